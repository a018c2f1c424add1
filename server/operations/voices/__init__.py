"""Voices that clients upload."""
