"""The code2wav stage: latent frames in, sound out (the HiFi-GAN decoder of a Piper voice);
in `qwen` the frames of Qwen3-TTS's codec."""
