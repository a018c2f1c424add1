"""How likely each token of a reply was, by the model before anything shaped the choice."""

from openapi.base import ResponseModel


class TopLogprob(ResponseModel):
    """A token, its natural log probability, and its bytes: null for a control token.

    A token may be a part of a character; then its text is U+FFFD and only its bytes say which.
    """

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(TopLogprob):
    """The token that was written, and the likeliest at its place."""

    top_logprobs: list[TopLogprob]


class ChoiceLogprobs(ResponseModel):
    """The tokens of one choice, or of one chunk of it."""

    content: list[TokenLogprob]
    refusal: None
