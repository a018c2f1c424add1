"""Text to phonemes, torch-free: cleaning, cutting into pieces, phonemizers, phoneme ids.

Nothing here depends on what speaks. Offsets always refer to the text as it was given.
"""
