"""Parameters of a talker as tests write them: a family's settings among the others."""

from dataclasses import fields

from stages.contract.messages import TalkerParams


def talker_params(kind, voice, seed=0, **given):
    """`TalkerParams` with the settings `kind`, filled with those of `given` that it has."""
    own = {each.name: given.pop(each.name) for each in fields(kind) if each.name in given}
    return TalkerParams(voice, seed, kind(**own), **given)
