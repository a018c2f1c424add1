"""code2wav of Qwen3-TTS: the streaming decoder of the 12 Hz codec."""
