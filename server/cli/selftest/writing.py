"""Completions and responses: whole and streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from server.cli.client.api import DONE
from server.cli.selftest.subject import COMPLETIONS, RESPONSES, expect

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject


def check_a_completion_whole_and_streamed(subject: Subject) -> None:
    """Text, and exactly one end, which is the last thing."""
    ask = {"model": subject.writer, "prompt": "Once upon a time", "max_tokens": 8}
    found = subject.post(COMPLETIONS, ask).json()
    expect(found["object"] == "text_completion", f"it is a {found['object']!r}")
    expect(isinstance(found["choices"][0]["text"], str), "it has no text")
    chunks = subject.chunks(COMPLETIONS, {**ask, "stream": True})
    ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    expect(ends[-1], "its stream has no end")
    expect(not any(ends[:-1]), "its stream ends more than once")


def check_a_response_whole_and_streamed(subject: Subject) -> None:
    """Completed; its events are numbered and end with what the whole is."""
    ask = {"model": subject.writer, "input": "Say hello.", "max_output_tokens": 32, "store": False}
    found = subject.post(RESPONSES, ask).json()
    expect(found["object"] == "response", f"it is a {found['object']!r}")
    endings = ("completed", "incomplete")
    expect(found["status"] in endings, f"its status is {found['status']!r}")
    events = [
        json.loads(event)
        for event in subject.stream(RESPONSES, {**ask, "stream": True})
        if event != DONE
    ]
    kinds = [event["type"] for event in events]
    expect(kinds[0] == "response.created", f"its first event is {kinds[0]}")
    ends = [f"response.{ending}" for ending in endings]
    expect(kinds[-1] in ends, f"its last event is {kinds[-1]}")
    numbers = [event["sequence_number"] for event in events]
    expect(numbers == list(range(len(numbers))), "its events are not numbered from 0")
