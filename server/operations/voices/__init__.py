"""Voices that clients add."""
