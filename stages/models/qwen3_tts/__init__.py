"""Qwen3-TTS (the 12 Hz family): a talker and its codec's decoder."""
