"""Qwen3-TTS of the real sizes on a GPU: `first.py`, then `python -m benchmarks.gpu`."""
