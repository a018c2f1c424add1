"""Qwen3-TTS (the 12 Hz family): a talker, and the decoder of its codec."""
