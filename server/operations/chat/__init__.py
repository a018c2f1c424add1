"""Chat completions: a request checked and planned, and its reply, whole or streamed."""
