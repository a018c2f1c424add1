"""Checks of chat completions: whole and streamed, text and audio, and refusals."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from server.cli.selftest.subject import CHAT, SPEECH, expect, expect_error

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject

FINISH_REASONS = ("stop", "length")


def check_models_are_listed(subject: Subject) -> None:
    """The models are a list, and each has an id."""
    listing = subject.get("/v1/models").json()
    expect(listing.get("object") == "list", f"`object` is {listing.get('object')!r}, not 'list'")
    expect(all(model["id"] for model in listing["data"]), "a model has no id")


def check_a_chat_whole(subject: Subject) -> None:
    """The response has one choice with text and a finish reason, and its usage adds up."""
    completion = subject.post(CHAT, subject.chat()).json()
    (choice,) = completion["choices"]
    expect(completion["object"] == "chat.completion", f"`object` is {completion['object']!r}")
    expect(choice["message"]["role"] == "assistant", "the role is not 'assistant'")
    expect(isinstance(choice["message"]["content"], str), "the message has no text")
    reason = choice["finish_reason"]
    expect(reason in FINISH_REASONS, f"the finish reason is {reason!r}")
    _check_usage(completion["usage"])


def check_a_chat_streamed(subject: Subject) -> None:
    """All chunks have one id; the first has the role, the last has the only finish reason."""
    chunks = subject.chunks(CHAT, subject.chat(stream=True))
    _check_chunks(chunks)
    text = "".join(_delta(chunk).get("content") or "" for chunk in chunks)
    expect(text, "the stream has no text")


def check_usage_in_a_stream_comes_last_and_once(subject: Subject) -> None:
    """With `include_usage`, the last chunk has the usage and no choices."""
    body = subject.chat(stream=True, stream_options={"include_usage": True})
    *others, last = subject.chunks(CHAT, body)
    expect(last["choices"] == [], "the last chunk has choices")
    _check_usage(last["usage"])
    expect(not any(chunk.get("usage") for chunk in others), "usage is sent more than once")
    _check_chunks(others)


def check_max_tokens_ends_with_finish_reason_length(subject: Subject) -> None:
    """With `max_tokens=1` the answer has one token."""
    completion = subject.post(CHAT, subject.chat(max_tokens=1)).json()
    reason = completion["choices"][0]["finish_reason"]
    expect(reason == "length", f"the finish reason is {reason!r}")
    num_tokens = completion["usage"]["completion_tokens"]
    expect(num_tokens == 1, f"the usage counts {num_tokens} tokens")


def check_two_choices_have_their_own_indexes(subject: Subject) -> None:
    """With `n=2`, whole and streamed, the choices have the indexes 0 and 1."""
    completion = subject.post(CHAT, subject.chat(n=2)).json()
    indexes = [choice["index"] for choice in completion["choices"]]
    expect(indexes == [0, 1], f"the indexes are {indexes}")
    finished = [
        choice["index"]
        for chunk in subject.chunks(CHAT, subject.chat(n=2, stream=True))
        for choice in chunk["choices"]
        if choice["finish_reason"]
    ]
    expect(sorted(finished) == [0, 1], f"the choices that finish in the stream are {finished}")


def check_a_spoken_chat_whole(subject: Subject) -> None:
    """The audio is a WAV file with a transcript, an id and an expiry time."""
    completion = subject.post(CHAT, subject.audio_chat("wav")).json()
    audio = completion["choices"][0]["message"]["audio"]
    expect(b64decode(audio["data"]).startswith(b"RIFF"), "the audio is not a WAV file")
    expect(audio["transcript"], "the audio has no transcript")
    expect(audio["id"], "the audio has no id")
    expect(audio["expires_at"] > completion["created"], "the audio expires before it was created")


def check_a_spoken_chat_streamed(subject: Subject) -> None:
    """The audio has one id, whole samples and a transcript; the finish reason comes last."""
    chunks = subject.chunks(CHAT, subject.audio_chat("pcm16", stream=True))
    _check_chunks(chunks)
    parts = [_delta(chunk).get("audio") or {} for chunk in chunks]
    ids = {part["id"] for part in parts if part.get("id")}
    expect(len(ids) == 1, f"the audio has {len(ids)} ids")
    pcm = b"".join(b64decode(part.get("data") or "") for part in parts)
    expect(any(pcm), "the audio is silent")
    expect(len(pcm) % 2 == 0, f"{len(pcm)} bytes of audio are not whole 16-bit samples")
    expect("".join(part.get("transcript") or "" for part in parts), "there is no transcript")


def check_a_client_that_disconnects_disturbs_no_other(subject: Subject) -> None:
    """After a client disconnects in the middle of a stream, the next request is answered."""
    body = subject.chat(stream=True, max_tokens=128)
    with subject.client.stream("POST", CHAT, json=body) as response:
        next(response.iter_bytes(), b"")
    check_a_chat_streamed(subject)


def check_invalid_chat_requests_are_refused(subject: Subject) -> None:
    """No messages, a temperature of 9, and n=0 are each refused with 400."""
    invalid: dict[str, object] = {"messages": [], "temperature": 9, "n": 0}
    for name, value in invalid.items():
        subject.expect_refusal(CHAT, subject.chat(**{name: value}))


def check_an_unknown_chat_model_is_refused(subject: Subject) -> None:
    """It is refused with 404."""
    subject.expect_refusal(CHAT, subject.chat(model="no-such-model"), 404)


def check_invalid_json_is_refused(subject: Subject) -> None:
    """It is refused with 400 or 422."""
    path = CHAT if subject.chat_model else SPEECH
    headers = {"content-type": "application/json"}
    response = subject.client.post(path, content=b"{nonsense", headers=headers)
    expect_error(response, 422 if response.status_code == 422 else 400)


def _check_chunks(chunks: list[dict[str, Any]]) -> None:
    expect(len({chunk["id"] for chunk in chunks}) == 1, "the chunks have several ids")
    objects = {chunk["object"] for chunk in chunks}
    expect(objects == {"chat.completion.chunk"}, f"`object` of the chunks is {objects}")
    expect(_delta(chunks[0]).get("role") == "assistant", "the first chunk has no role")
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    expect(reasons[-1] in FINISH_REASONS, f"the finish reason of the last chunk is {reasons[-1]!r}")
    expect(not any(reasons[:-1]), "there is more than one finish reason")


def _check_usage(usage: dict[str, Any]) -> None:
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    expect(usage["total_tokens"] == total, f"the usage does not add up: {usage}")


def _delta(chunk: dict[str, Any]) -> dict[str, Any]:
    delta: dict[str, Any] = chunk["choices"][0]["delta"] if chunk["choices"] else {}
    return delta
