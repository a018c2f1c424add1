"""Generates files from the code: openapi.json and the pages on settings and metrics."""
