"""Log probabilities of the tokens of a reply: the model's own, before bias and temperature."""

from openapi.base import ResponseModel


class TopLogprob(ResponseModel):
    """A token, its natural log probability, and its bytes. A control token has no bytes.

    If a token is only a part of a character, its text is U+FFFD and its bytes tell which part.
    """

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(TopLogprob):
    """The chosen token, and the likeliest tokens at its position."""

    top_logprobs: list[TopLogprob]


class ChoiceLogprobs(ResponseModel):
    """The tokens of one choice, or of one chunk of a choice."""

    content: list[TokenLogprob]
    refusal: None
