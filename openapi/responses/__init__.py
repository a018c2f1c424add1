"""The wire format of `/v1/responses`."""
