"""What openapi.json says about routes beyond their code: bodies, responses, errors."""
