"""code2wav of Qwen3-TTS: the decoder of its 12 Hz codec, which keeps state from frame to frame."""
