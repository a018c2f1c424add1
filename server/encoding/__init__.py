"""Encodes samples: PCM, audio files of each format, and encoders that run in threads."""
