"""The wire of `POST /v1/completions`."""
