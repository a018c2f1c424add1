"""Stages without weights: deterministic text and tones, by the same contract as the real ones."""
