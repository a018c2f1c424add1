"""Every parameter of a chat, and what this server does with it: the one table.

The docs and the exported document show it; a test sends each example and compares. What is not in
it is an unknown field, and accepted without effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

INTRODUCTION = (
    "What `POST /v1/chat/completions` does with each parameter. Written by "
    "`python -m openapi.chat.parameters`; a test sends each one."
)

Treatment = Literal["honoured", "accepted without effect", "refused"]

TREATMENTS: dict[Treatment, str] = {
    "honoured": "The answer is as the parameter says.",
    "accepted without effect": "Taken, and ignored. So is every field that is not listed here.",
    "refused": "400, with the parameter's name in `param`. An explicit null, an empty list, and "
    "the value that means nothing is wanted are accepted.",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """`example` is a value that is treated so."""

    name: str
    treatment: Treatment
    example: Any
    note: str


_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_AUDIO = {"voice": "alloy", "format": "pcm16"}
_SCHEMA = {"name": "n", "schema": {"type": "object"}}


def _ignored(name: str, example: Any, note: str) -> Parameter:
    return Parameter(name, "accepted without effect", example, note)


CHAT_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("model", "honoured", None, "An id or an alias of `GET /v1/models`; else 404."),
    Parameter(
        "messages",
        "honoured",
        [{"role": "user", "content": "Hi"}],
        "Text, as a string or as parts; an earlier spoken reply by `audio.id`, for an hour. Parts "
        "of other types are refused. What tools and functions said is read as the user's words.",
    ),
    Parameter("modalities", "honoured", ["text"], "`audio` in it: the reply is spoken."),
    Parameter(
        "audio", "honoured", _AUDIO, "Voice and format of a spoken reply; pcm16 where it streams."
    ),
    Parameter("stream", "honoured", False, "Chunks as they are made, then `[DONE]`."),
    Parameter(
        "stream_options",
        "honoured",
        None,
        "`include_usage`. Only with `stream`. `include_obfuscation` has no effect. "
        "In `usage`, `cached_tokens` is how much of the prompt was known from earlier requests.",
    ),
    Parameter(
        "n",
        "honoured",
        2,
        "1 to 128, and at most as many as the server runs at once. Seeds are counted up from the "
        "given one; the prompt counts once; if one fails, all do.",
    ),
    Parameter("temperature", "honoured", 0.5, "0 to 2; 0.2 if not given."),
    Parameter("top_p", "honoured", 0.5, "0 to 1."),
    Parameter("top_k", "honoured", 3, "Ours: the so many likeliest tokens; 0 is all."),
    Parameter(
        "max_completion_tokens",
        "honoured",
        4,
        "Counts text tokens; the server has a default, for a small model rambles.",
    ),
    Parameter("max_tokens", "honoured", 4, "The older name of `max_completion_tokens`."),
    Parameter("stop", "honoured", ["END"], "Up to 4 strings; the text ends before them."),
    Parameter(
        "seed",
        "honoured",
        7,
        "The same request with the same seed has the same answer; where the thinker computes in "
        "bfloat16, perhaps another one beside other requests.",
    ),
    Parameter("frequency_penalty", "honoured", 0.5, "-2 to 2, over the tokens of the reply."),
    Parameter("presence_penalty", "honoured", 0.5, "-2 to 2, over the tokens of the reply."),
    Parameter("logit_bias", "honoured", {"5": -100}, "-100 to 100, by token id of the model."),
    Parameter(
        "logprobs",
        "honoured",
        True,
        "The model's own, before bias, penalties and temperature; whole and streamed.",
    ),
    Parameter("top_logprobs", "honoured", None, "0 to 20, with `logprobs`."),
    Parameter(
        "response_format",
        "honoured",
        {"type": "json_schema", "json_schema": _SCHEMA},
        "`text`, `json_object`, `json_schema`: only tokens that keep to the schema are taken. A "
        "reply that reaches its limit is cut all the same. A schema that cannot be kept to is "
        "refused.",
    ),
    Parameter("timeout_s", "honoured", 20.0, "Ours: the request's own deadline."),
    _ignored("metadata", {"a": "b"}, "Nothing is stored."),
    _ignored("store", True, "Nothing is stored."),
    _ignored("user", "me", ""),
    _ignored("safety_identifier", "me", ""),
    _ignored("service_tier", "flex", "The answer says `default`."),
    _ignored("prompt_cache_key", "k", ""),
    _ignored("prompt_cache_retention", "24h", ""),
    _ignored("prompt_cache_options", {"mode": "implicit"}, ""),
    _ignored("prediction", {"type": "content", "content": "x"}, ""),
    _ignored("reasoning_effort", "low", "The models here do not reason apart."),
    _ignored("verbosity", "low", ""),
    _ignored("moderation", {"model": "m"}, ""),
    _ignored("web_search_options", {}, "Nothing is searched for."),
    _ignored("parallel_tool_calls", True, "There are no tool calls."),
    Parameter("tools", "refused", [_TOOL], 'Accepted with `tool_choice: "none"`.'),
    Parameter("tool_choice", "refused", "required", "`none` and `auto` are accepted."),
    Parameter("functions", "refused", [{"name": "f"}], 'As `tools`, with `function_call: "none"`.'),
    Parameter("function_call", "refused", {"name": "f"}, "`none` and `auto` are accepted."),
)


def markdown() -> str:
    """The table as `docs/chat-parameters.md` has it."""
    parts = ["# Parameters of a chat", INTRODUCTION]
    for treatment, meaning in TREATMENTS.items():
        rows = [
            f"| `{parameter.name}` | {parameter.note} |"
            for parameter in CHAT_PARAMETERS
            if parameter.treatment == treatment
        ]
        table = "\n".join(["| parameter | |", "|---|---|", *rows])
        parts += [f"## {treatment.capitalize()}", meaning, table]
    return "\n\n".join(parts) + "\n"


def names_of(treatment: Treatment) -> list[str]:
    """The parameters that are treated so."""
    return [parameter.name for parameter in CHAT_PARAMETERS if parameter.treatment == treatment]


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
