"""What is generated from the code: openapi.json, and the pages of settings and metrics."""
