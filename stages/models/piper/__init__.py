"""Piper voices (VITS): the talker makes latent frames of text, code2wav makes sound of frames.

Text → phonemes → encoder → durations → flow → latent frames → HiFi-GAN → samples. A voice is an
`.onnx` file with weights and an `.onnx.json` file with settings.
"""
