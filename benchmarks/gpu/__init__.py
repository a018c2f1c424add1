"""Qwen3-TTS of the real sizes on a GPU. Run `first.py` first, then `python -m benchmarks.gpu`."""
