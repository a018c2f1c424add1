"""Completions of bare prompts: a request checked and planned, and its answer."""
