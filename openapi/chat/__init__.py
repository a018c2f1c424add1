"""The wire format of `POST /v1/chat/completions`."""
