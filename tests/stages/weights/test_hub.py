"""A model's folder comes from a path, the cache or the hub, or there is a clear error."""

import pytest

from stages.contract.errors import CheckpointError
from stages.weights.hub import model_folder

NEEDED = ("config.json", "weights|weights.index")


class Hub:
    """A fake hub and its cache: each a folder, or None if it is empty."""

    def __init__(self, cached=None, remote=None):
        self._cached = cached
        self._remote = remote
        self.asked = []

    def __call__(self, name, patterns, *, local_only):
        self.asked.append(local_only)
        folder = self._cached if local_only else self._remote
        if folder is None:
            raise OSError("not there\nand more")
        return str(folder)


def folder_with(path, *names):
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


def test_a_folder_is_used_as_it_is(tmp_path):
    folder = folder_with(tmp_path / "model", "config.json", "weights.index")
    hub = Hub()
    assert model_folder(str(folder), ("*",), NEEDED, hub) == folder
    assert hub.asked == []


def test_a_model_that_is_complete_in_the_cache_needs_no_network(tmp_path):
    folder = folder_with(tmp_path / "cached", "config.json", "weights")
    hub = Hub(cached=folder)
    assert model_folder("owner/name", ("*",), NEEDED, hub) == folder
    assert hub.asked == [True]


@pytest.mark.parametrize("cached", [(), ("config.json",)])
def test_a_model_that_is_not_complete_in_the_cache_is_fetched(cached, tmp_path):
    part = folder_with(tmp_path / "cached", *cached) if cached else None
    whole = folder_with(tmp_path / "whole", "config.json", "weights")
    hub = Hub(part, whole)
    assert model_folder("owner/name", ("*",), NEEDED, hub) == whole
    assert hub.asked == [True, False]


def test_a_missing_or_incomplete_model_is_refused(tmp_path):
    with pytest.raises(
        CheckpointError,
        match=r"owner/name is not a folder, and cannot be fetched from the hub: not there$",
    ):
        model_folder("owner/name", ("*",), NEEDED, Hub())
    folder = folder_with(tmp_path / "model", "config.json")
    with pytest.raises(CheckpointError, match=r"has no weights or weights\.index$"):
        model_folder(str(folder), ("*",), NEEDED, Hub())
