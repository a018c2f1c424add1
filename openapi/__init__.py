"""The wire: what clients send and what they get, as pydantic models, and the exported document.

Knows HTTP bodies only: no routes, no models that speak, no files.
"""
