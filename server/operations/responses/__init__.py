"""Responses, in text: a request checked and planned, its answer, and what is kept of it."""
