"""Runs the checks one after the other, and reports the outcome of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import httpx2

from server.cli.client.api import RemoteError, list_models
from server.cli.selftest import chat, speech, writing
from server.cli.selftest.subject import NotOfferedError, Subject, WrongError

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Subject], None]

Outcome = Literal["ok", "wrong", "not offered"]
SPEECH_MODEL = "tts-1"  # used for a server that does not list speech models


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one check. `reason` is empty if the outcome is ok."""

    check: str
    outcome: Outcome
    reason: str = ""


def checks() -> list[Check]:
    """All checks, in the order of their definition: chat, completions and responses, speech."""
    modules = (chat, writing, speech)
    return [
        member
        for module in modules
        for name, member in vars(module).items()
        if name.startswith("check_")
    ]


def subject_of(
    client: httpx2.Client, speech_model: str = "", chat_model: str = "", voice: str = "alloy"
) -> Subject:
    """The server behind `client`. An empty model id is replaced by the first one that it lists.

    Raises RemoteError if the server cannot be reached or refuses to list its models.
    """
    listed = list_models(client)
    speech_model = speech_model or next(iter(listed.speech), SPEECH_MODEL)
    return Subject(client, speech_model, chat_model or next(iter(listed.others), ""), voice)


def name_of(check: Check) -> str:
    """The name of a check in the report: `check_a_chat_whole` becomes "a chat whole"."""
    return check.__name__.removeprefix("check_").replace("_", " ")


def run(check: Check, subject: Subject) -> Report:
    """Run one check. If it cannot parse the response, the response is wrong."""
    name = name_of(check)
    try:
        check(subject)
    except NotOfferedError as reason:
        return Report(name, "not offered", str(reason))
    except (WrongError, RemoteError) as problem:
        return Report(name, "wrong", str(problem))
    except httpx2.HTTPError as problem:
        return Report(name, "wrong", f"{type(problem).__name__}: {problem}")
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        return Report(name, "wrong", f"the response is malformed or lacks a field: {problem!r}")
    return Report(name, "ok")
