"""The usage of a chat. Each total is the sum of its parts."""

from openapi.base import ResponseModel


class PromptDetails(ResponseModel):
    """The parts of `prompt_tokens`."""

    cached_tokens: int
    audio_tokens: int
    text_tokens: int
    image_tokens: int


class CompletionDetails(ResponseModel):
    """The parts of `completion_tokens`."""

    reasoning_tokens: int
    audio_tokens: int
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int
    text_tokens: int


class ChatUsage(ResponseModel):
    """The usage of one chat completion."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


def chat_usage(
    prompt_tokens: int, cached_tokens: int, text_tokens: int, audio_tokens: int
) -> ChatUsage:
    """The usage of a text prompt and a reply in text, which may also be spoken.

    `cached_tokens` is how many of the prompt's tokens were in the cache.
    """
    completion_tokens = text_tokens + audio_tokens
    return ChatUsage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
        prompt_tokens_details=PromptDetails(
            cached_tokens=cached_tokens,
            audio_tokens=0,
            text_tokens=prompt_tokens,
            image_tokens=0,
        ),
        completion_tokens_details=CompletionDetails(
            reasoning_tokens=0,
            audio_tokens=audio_tokens,
            accepted_prediction_tokens=0,
            rejected_prediction_tokens=0,
            text_tokens=text_tokens,
        ),
    )
