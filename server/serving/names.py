"""Which served model answers to which name.

Every model answers to its id. An alias that several models declare goes to the one that the setting
`aliases` names, otherwise to the first on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from stages.contract.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stages.contract.model import ModelSpec

log = structlog.get_logger(__name__)


def assign_aliases(
    models: Sequence[ModelSpec], chosen: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """The aliases of each model, by its id. `chosen` maps aliases to model ids.

    Raises StartError if two models have one id, if an alias is the id of another model, or if
    `chosen` names a model that is not served.
    """
    ids = [model.model_id for model in models]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise StartError(f"two models have the id {twice!r}: serve one of them only")
    owners: dict[str, str] = {}
    for alias, model_id in chosen.items():
        if model_id not in ids:
            raise StartError(
                f"setting aliases: {alias} goes to {model_id!r}, which is not the id of a model "
                f"that is served ({', '.join(ids)})"
            )
        _check_alias(alias, model_id, ids, "setting aliases: ")
        owners[alias] = model_id
    for model in models:
        for alias in model.aliases:
            _check_alias(alias, model.model_id, ids)
            owner = owners.setdefault(alias, model.model_id)
            if owner != model.model_id and alias not in chosen:
                log.info("alias_shared", alias=alias, model=owner)
    return {each: tuple(alias for alias, owner in owners.items() if owner == each) for each in ids}


def _check_alias(alias: str, model_id: str, ids: Sequence[str], where: str = "") -> None:
    if alias in ids and alias != model_id:
        raise StartError(f"{where}the alias {alias!r} of {model_id} is the id of another model")
