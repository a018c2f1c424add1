"""Stages without weights: deterministic text and tones, under the same contract as real stages."""
