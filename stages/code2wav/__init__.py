"""The code2wav stage: latent frames in, sound out. The HiFi-GAN decoder of a Piper voice; in `qwen`
the decoder of Qwen3-TTS's codec."""
