"""The talker of Qwen3-TTS: a speech language model that turns text into frames of codec codes."""
