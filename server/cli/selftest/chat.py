"""Chats: whole and streamed, in text and in sound, and what is refused."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from server.cli.selftest.subject import CHAT, SPEECH, error_in, expect

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject

ENDS = ("stop", "length")


def check_models_are_listed(subject: Subject) -> None:
    """Each with its id."""
    listing = subject.get("/v1/models").json()
    expect(listing.get("object") == "list", f"it is a {listing.get('object')!r}, not a list")
    expect(all(model["id"] for model in listing["data"]), "there is a model without an id")


def check_a_chat_whole(subject: Subject) -> None:
    """One choice with text, an end, and usage that adds up."""
    found = subject.post(CHAT, subject.chat()).json()
    (choice,) = found["choices"]
    expect(found["object"] == "chat.completion", f"it is a {found['object']!r}")
    expect(choice["message"]["role"] == "assistant", "it is not the assistant's")
    expect(isinstance(choice["message"]["content"], str), "it has no text")
    expect(choice["finish_reason"] in ENDS, f"it ends with {choice['finish_reason']!r}")
    _check_usage(found["usage"])


def check_a_chat_streamed(subject: Subject) -> None:
    """One id, the role first, text, and exactly one end, which is the last thing."""
    chunks = subject.chunks(CHAT, subject.chat(stream=True))
    _check_chunks(chunks)
    text = "".join(_delta(chunk).get("content") or "" for chunk in chunks)
    expect(text, "it has no text")


def check_usage_in_a_stream_comes_last_and_once(subject: Subject) -> None:
    """In a chunk of its own without choices."""
    ask = subject.chat(stream=True, stream_options={"include_usage": True})
    *others, last = subject.chunks(CHAT, ask)
    expect(last["choices"] == [], "the last chunk has choices")
    _check_usage(last["usage"])
    expect(not any(chunk.get("usage") for chunk in others), "usage comes more than once")
    _check_chunks(others)


def check_a_limit_of_tokens_ends_with_length(subject: Subject) -> None:
    """After that many."""
    found = subject.post(CHAT, subject.chat(max_tokens=1)).json()
    end = found["choices"][0]["finish_reason"]
    expect(end == "length", f"it ends with {end!r}")
    count = found["usage"]["completion_tokens"]
    expect(count == 1, f"it counts {count} tokens")


def check_two_choices_are_told_apart(subject: Subject) -> None:
    """Whole and streamed."""
    found = subject.post(CHAT, subject.chat(n=2)).json()
    indexes = [choice["index"] for choice in found["choices"]]
    expect(indexes == [0, 1], f"their indexes are {indexes}")
    ends = [
        choice["index"]
        for chunk in subject.chunks(CHAT, subject.chat(n=2, stream=True))
        for choice in chunk["choices"]
        if choice["finish_reason"]
    ]
    expect(sorted(ends) == [0, 1], f"in the stream those that end are {ends}")


def check_a_spoken_chat_whole(subject: Subject) -> None:
    """A WAV file, and what is said in it."""
    found = subject.post(CHAT, subject.spoken("wav")).json()
    audio = found["choices"][0]["message"]["audio"]
    expect(b64decode(audio["data"]).startswith(b"RIFF"), "its sound is no WAV file")
    expect(audio["transcript"], "it has no transcript")
    expect(audio["id"], "its sound has no id")
    expect(audio["expires_at"] > found["created"], "its sound expires before it was made")


def check_a_spoken_chat_streamed(subject: Subject) -> None:
    """One id of sound, samples, what is said in them, and one end after all of it."""
    chunks = subject.chunks(CHAT, subject.spoken("pcm16", stream=True))
    _check_chunks(chunks)
    parts = [_delta(chunk).get("audio") or {} for chunk in chunks]
    ids = {part["id"] for part in parts if part.get("id")}
    expect(len(ids) == 1, f"its sound has {len(ids)} ids")
    sound = b"".join(b64decode(part.get("data") or "") for part in parts)
    expect(any(sound), "there is no sound in it")
    expect(len(sound) % 2 == 0, f"{len(sound)} bytes are not whole samples")
    expect("".join(part.get("transcript") or "" for part in parts), "it has no transcript")


def check_a_client_that_leaves_disturbs_no_other(subject: Subject) -> None:
    """The next request is answered as always."""
    ask = subject.chat(stream=True, max_tokens=128)
    with subject.client.stream("POST", CHAT, json=ask) as reply:
        next(reply.iter_bytes(), b"")
    check_a_chat_streamed(subject)


def check_chats_that_cannot_be_are_refused(subject: Subject) -> None:
    """With 400, whatever is wrong."""
    wrong: dict[str, object] = {"messages": [], "temperature": 9, "n": 0}
    for name, value in wrong.items():
        subject.refused(CHAT, subject.chat(**{name: value}))


def check_a_chat_model_that_is_not_there_is_refused(subject: Subject) -> None:
    """With 404."""
    subject.refused(CHAT, subject.chat(model="no-such-model"), 404)


def check_what_is_no_json_is_refused(subject: Subject) -> None:
    """With 400, or 422."""
    path = CHAT if subject.chat_model else SPEECH
    headers = {"content-type": "application/json"}
    reply = subject.client.post(path, content=b"{nonsense", headers=headers)
    error_in(reply, 422 if reply.status_code == 422 else 400)


def _check_chunks(chunks: list[dict[str, Any]]) -> None:
    expect(len({chunk["id"] for chunk in chunks}) == 1, "its chunks have several ids")
    kinds = {chunk["object"] for chunk in chunks}
    expect(kinds == {"chat.completion.chunk"}, f"its chunks are {kinds}")
    expect(_delta(chunks[0]).get("role") == "assistant", "its first chunk has no role")
    ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    expect(ends[-1] in ENDS, f"its last chunk ends with {ends[-1]!r}")
    expect(not any(ends[:-1]), "it ends more than once")


def _check_usage(usage: dict[str, Any]) -> None:
    both = usage["prompt_tokens"] + usage["completion_tokens"]
    expect(usage["total_tokens"] == both, f"its usage does not add up: {usage}")


def _delta(chunk: dict[str, Any]) -> dict[str, Any]:
    delta: dict[str, Any] = chunk["choices"][0]["delta"] if chunk["choices"] else {}
    return delta
