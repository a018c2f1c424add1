"""The wire of `POST /v1/chat/completions`."""
