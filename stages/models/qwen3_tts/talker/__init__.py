"""The talker of Qwen3-TTS: text in, frames of codec codes out, by a speech language model."""
