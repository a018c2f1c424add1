"""Which models there are, and how each is wired out of stages, workers and edges."""
