"""Samples to bytes: PCM, files of each format, and encoders beside the event loop."""
