"""A client of any server with an OpenAI-compatible API, for the commands."""
