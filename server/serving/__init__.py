"""What is served: models, voices, outputs, and how many requests run at once."""
