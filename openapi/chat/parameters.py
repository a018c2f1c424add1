"""The table of all chat parameters, and what this server does with each one.

`docs/chat-parameters.md` and `openapi.json` are made from it, and a test sends each example. Fields
that are not in it are unknown fields, which are accepted without effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

INTRODUCTION = (
    "What `POST /v1/chat/completions` does with each parameter. This page is written by "
    "`python -m openapi.chat.parameters`. A test sends each parameter."
)

Treatment = Literal["honoured", "accepted without effect", "refused"]

TREATMENTS: dict[Treatment, str] = {
    "honoured": "The parameter takes effect.",
    "accepted without effect": "The parameter is ignored. Fields not in this list are too.",
    "refused": "400, with the parameter's name in `param`. Null, an empty list, and values that "
    "switch the feature off are accepted.",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """`example` is a value that gets this treatment; the test sends it."""

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
    Parameter(
        "model", "honoured", None, "An id or an alias from `GET /v1/models`. Others are a 404."
    ),
    Parameter(
        "messages",
        "honoured",
        [{"role": "user", "content": "Hi"}],
        "Text, as a string or as parts. An earlier spoken reply can be referred to by `audio.id` "
        "for an hour. Parts of other types are refused. Messages of the roles `tool` and "
        "`function` are read as messages of the user.",
    ),
    Parameter("modalities", "honoured", ["text"], "With `audio`, the reply is spoken."),
    Parameter(
        "audio", "honoured", _AUDIO, "Voice and format of a spoken reply. A stream needs `pcm16`."
    ),
    Parameter("stream", "honoured", False, "Sends chunks while the reply is made, then `[DONE]`."),
    Parameter(
        "stream_options",
        "honoured",
        None,
        "`include_usage`, only with `stream`. `include_obfuscation` has no effect. In `usage`, "
        "`cached_tokens` is how many tokens of the prompt were cached from earlier requests.",
    ),
    Parameter(
        "n",
        "honoured",
        2,
        "1 to 128, and at most as many as the server runs at once. Choice `i` uses `seed` + `i`. "
        "The prompt counts once. If one choice fails, the request fails.",
    ),
    Parameter("temperature", "honoured", 0.5, "0 to 2. The default is 0.2."),
    Parameter("top_p", "honoured", 0.5, "0 to 1."),
    Parameter(
        "top_k", "honoured", 3, "Extension: sample from the `top_k` likeliest tokens. 0 means all."
    ),
    Parameter(
        "max_completion_tokens",
        "honoured",
        4,
        "Limits the text tokens. The server has a default, because small models ramble.",
    ),
    Parameter("max_tokens", "honoured", 4, "The older name of `max_completion_tokens`."),
    Parameter(
        "stop", "honoured", ["END"], "Up to 4 strings. The text ends before the first of them."
    ),
    Parameter(
        "seed",
        "honoured",
        7,
        "The same request with the same seed gets the same reply. In bfloat16 the reply may "
        "differ if other requests run at the same time.",
    ),
    Parameter("frequency_penalty", "honoured", 0.5, "-2 to 2. Counts the tokens of the reply."),
    Parameter("presence_penalty", "honoured", 0.5, "-2 to 2. Counts the tokens of the reply."),
    Parameter("logit_bias", "honoured", {"5": -100}, "-100 to 100 for each token id of the model."),
    Parameter(
        "logprobs",
        "honoured",
        True,
        "Log probabilities before bias, penalties and temperature, also in a stream.",
    ),
    Parameter("top_logprobs", "honoured", None, "0 to 20, with `logprobs`."),
    Parameter(
        "response_format",
        "honoured",
        {"type": "json_schema", "json_schema": _SCHEMA},
        "`text`, `json_object` or `json_schema`. Only tokens that fit the schema are sampled. A "
        "reply that reaches its token limit is still cut off. Schemas that are not supported are "
        "refused.",
    ),
    Parameter("timeout_s", "honoured", 20.0, "Extension: the deadline of the request, in seconds."),
    _ignored("metadata", {"a": "b"}, "Nothing is stored."),
    _ignored("store", True, "Nothing is stored."),
    _ignored("user", "me", ""),
    _ignored("safety_identifier", "me", ""),
    _ignored("service_tier", "flex", "The reply says `default`."),
    _ignored("prompt_cache_key", "k", ""),
    _ignored("prompt_cache_retention", "24h", ""),
    _ignored("prompt_cache_options", {"mode": "implicit"}, ""),
    _ignored("prediction", {"type": "content", "content": "x"}, ""),
    _ignored("reasoning_effort", "low", "The models have no separate reasoning."),
    _ignored("verbosity", "low", ""),
    _ignored("moderation", {"model": "m"}, ""),
    _ignored("web_search_options", {}, "There is no web search."),
    _ignored("parallel_tool_calls", True, "There are no tool calls."),
    Parameter("tools", "refused", [_TOOL], 'Accepted with `tool_choice: "none"`.'),
    Parameter("tool_choice", "refused", "required", "`none` and `auto` are accepted."),
    Parameter("functions", "refused", [{"name": "f"}], 'As `tools`, with `function_call: "none"`.'),
    Parameter("function_call", "refused", {"name": "f"}, "`none` and `auto` are accepted."),
)


def markdown() -> str:
    """The page `docs/chat-parameters.md`."""
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
    """The names of the parameters with this treatment."""
    return [parameter.name for parameter in CHAT_PARAMETERS if parameter.treatment == treatment]


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
