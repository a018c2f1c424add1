"""A pipeline: ordered stages between what goes into a model and what comes out. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import TYPE_CHECKING

from stages.contract.messages import (
    Code2WavParams,
    Request,
    StageInput,
    TalkerParams,
    TextChunk,
    ThinkerParams,
)

if TYPE_CHECKING:
    from stages.contract.handle import WorkerHandle
    from stages.contract.roles import Role


class Medium(StrEnum):
    """What a request brings, or what its client gets."""

    TEXT = auto()
    AUDIO = auto()


TEXT_ONLY = frozenset({Medium.TEXT})
AUDIO_ONLY = frozenset({Medium.AUDIO})
TEXT_AND_AUDIO = frozenset({Medium.TEXT, Medium.AUDIO})


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One way through a model.

    `handles` has one handle for each of `roles`. The client gets the outputs of the stages in
    `final_stage_ids`.
    """

    inputs: Medium
    outputs: frozenset[Medium]
    roles: tuple[Role, ...]
    handles: tuple[WorkerHandle, ...]
    final_stage_ids: frozenset[int]


def speech_request(text: str, talker: TalkerParams) -> Request:
    """A request for a speech pipeline: talker, then code2wav."""
    return Request(_speaking(talker), (TextChunk(text),))


def chat_request(thinker: ThinkerParams, talker: TalkerParams | None = None) -> Request:
    """A request for a chat pipeline: the thinker only, or all three stages if `talker` is set."""
    return Request((thinker, *(_speaking(talker) if talker else ())))


def _speaking(talker: TalkerParams) -> tuple[TalkerParams, Code2WavParams]:
    """The parameters of talker and code2wav."""
    return talker, Code2WavParams(talker.voice, talker.speaker, talker.file)


def prewarm_fn(stage_id: int, request: Request) -> StageInput:
    """The input that opens a later stage of `request` before its first chunk comes."""
    return request.stage_input(stage_id)
