"""The official Python client, which checks every response against its own types."""

import openai


def client_of(address, **options):
    """A client for the server at `address`. It does not retry."""
    strict = {"max_retries": 0, "timeout": 20, "_strict_response_validation": True}
    return openai.OpenAI(base_url=f"{address.url}/v1", api_key="k", **{**strict, **options})


def lenient(address):
    """A client without strict validation, for streamed completions.

    Its own type does not allow `finish_reason` to be null, which the server sends before the end.
    """
    return client_of(address, _strict_response_validation=False)
