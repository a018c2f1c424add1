"""The models that are served: their voices, their outputs, and how many requests run at once."""
