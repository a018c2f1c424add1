"""The roles of stages: what the server, the metrics and the settings call a stage.

A model has the stages that it needs. Stage numbers have a meaning only inside a pipeline.
"""

from enum import StrEnum


class Role(StrEnum):
    """What a stage does: it understands audio, writes text, makes audio codes, or decodes them."""

    LISTENER = "listener"
    THINKER = "thinker"
    TALKER = "talker"
    CODE2WAV = "code2wav"
