"""The talker stage: text in, latent frames of a spoken piece out (a Piper voice, VITS)."""
