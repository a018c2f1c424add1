"""The wire format: what clients send and receive, as pydantic models, and `openapi.json`.

It knows the bodies of requests and responses. It does not know routes, models or voices.
"""
