"""Checks of completions and responses: whole and streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from server.cli.client.api import DONE
from server.cli.selftest.subject import COMPLETIONS, RESPONSES, expect

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject


def check_a_completion_whole_and_streamed(subject: Subject) -> None:
    """The completion has text. In the stream, the last chunk has the only finish reason."""
    body = {"model": subject.text_model, "prompt": "Once upon a time", "max_tokens": 8}
    completion = subject.post(COMPLETIONS, body).json()
    expect(completion["object"] == "text_completion", f"`object` is {completion['object']!r}")
    expect(isinstance(completion["choices"][0]["text"], str), "the completion has no text")
    chunks = subject.chunks(COMPLETIONS, {**body, "stream": True})
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    expect(reasons[-1], "the last chunk has no finish reason")
    expect(not any(reasons[:-1]), "there is more than one finish reason")


def check_a_response_whole_and_streamed(subject: Subject) -> None:
    """The response is finished. Its events are numbered from 0, and the last one finishes it."""
    body = {
        "model": subject.text_model,
        "input": "Say hello.",
        "max_output_tokens": 32,
        "store": False,
    }
    response = subject.post(RESPONSES, body).json()
    expect(response["object"] == "response", f"`object` is {response['object']!r}")
    statuses = ("completed", "incomplete")
    expect(response["status"] in statuses, f"the status is {response['status']!r}")
    events = [
        json.loads(event)
        for event in subject.stream(RESPONSES, {**body, "stream": True})
        if event != DONE
    ]
    types = [event["type"] for event in events]
    expect(types[0] == "response.created", f"the first event is {types[0]}")
    final_types = [f"response.{status}" for status in statuses]
    expect(types[-1] in final_types, f"the last event is {types[-1]}")
    numbers = [event["sequence_number"] for event in events]
    expect(numbers == list(range(len(numbers))), "the events are not numbered from 0")
