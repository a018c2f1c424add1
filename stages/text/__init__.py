"""From text to phoneme ids: cleaning, splitting into pieces, normalisation, phonemizers.

This package is torch-free, so that the server may import it. It knows nothing of models or voices.
Offsets are code points of the source text, as the client sent it or the thinker wrote it.
"""
