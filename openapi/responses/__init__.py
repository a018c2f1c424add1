"""The wire of `/v1/responses`."""
