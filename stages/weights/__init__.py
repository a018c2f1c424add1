"""Model files: safetensors, ONNX and JSON, their download from the hub, and loaded voices."""
