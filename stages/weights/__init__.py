"""Reads model files: safetensors, ONNX, JSON, and where they are on the hub."""
