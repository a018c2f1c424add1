"""Runs the checks, one after the other, and says what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import httpx2

from server.cli.client.api import RemoteError, offer_of
from server.cli.selftest import chat, speech, writing
from server.cli.selftest.subject import NotOfferedError, Subject, WrongError

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Subject], None]

Outcome = Literal["ok", "wrong", "not offered"]
SPEECH_MODEL = "tts-1"  # what servers without a list of speech models are asked for


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one check."""

    check: str
    outcome: Outcome
    why: str = ""


def checks() -> list[Check]:
    """All checks, in the order in which they are written."""
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
    """The server behind `client`, with what it lists where no model is named.

    Raises RemoteError where it cannot be reached.
    """
    offer = offer_of(client)
    speech_model = speech_model or next(iter(offer.speech), SPEECH_MODEL)
    return Subject(client, speech_model, chat_model or next(iter(offer.others), ""), voice)


def name_of(check: Check) -> str:
    """What it is called in a report."""
    return check.__name__.removeprefix("check_").replace("_", " ")


def run(check: Check, subject: Subject) -> Report:
    """Run one check. What it stumbles over in a reply is what is wrong with the reply."""
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
        return Report(name, "wrong", f"the reply lacks something: {problem!r}")
    return Report(name, "ok")
