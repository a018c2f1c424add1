"""Deployments as tests want them: each stage placed as it says."""

from pathlib import Path

from stages.contract.roles import Role
from stages.models.registry import build
from stages.runtime.placement import BuildConfig

ROLES = (Role.THINKER, Role.TALKER, Role.CODE2WAV)


def placed(*placements):
    """The placements of thinker, talker and code2wav, in this order."""
    return dict(zip(ROLES, placements, strict=False))


def build_fake(*placements):
    """The fake models; thinker, talker and code2wav are placed as given."""
    return build(["fake"], BuildConfig(Path("unused"), placed(*placements)))
