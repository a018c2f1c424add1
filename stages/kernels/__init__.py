"""Building blocks of models in torch, fast on this machine."""
