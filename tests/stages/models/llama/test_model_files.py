"""The packaged model: found, converted once, all or nothing."""

import numpy as np
import pytest

from stages.models.llama.gguf_weights import half_split
from stages.models.llama.model_files import ModelFiles
from stages.models.llama.packaged_model import find_gguf, prepare


def test_a_missing_package_is_named():
    with pytest.raises(FileNotFoundError, match="no_such_package"):
        find_gguf("no_such_package")


def test_a_package_without_weights_is_named():
    with pytest.raises(FileNotFoundError, match="tokenizers"):
        find_gguf("tokenizers")


def test_rotary_pairs_become_halves():
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert half_split(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.model
def test_the_second_start_converts_nothing(model_files, model_cache_dir):
    before = model_files.weights.stat().st_mtime_ns
    assert prepare(model_cache_dir) == model_files
    assert model_files.weights.stat().st_mtime_ns == before


def test_a_file_that_is_no_model_leaves_nothing_behind(tmp_path):
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(bytes(64))
    with pytest.raises(ValueError, match="magic"):
        prepare(tmp_path / "cache", wrong)
    assert list(tmp_path.iterdir()) == [wrong]


@pytest.mark.model
def test_a_second_conversion_keeps_the_files_of_the_first(tmp_path):
    from stages.models.llama.gguf_weights import convert

    files = ModelFiles(tmp_path / "model")
    files.directory.mkdir()
    (files.directory / "theirs").touch()
    convert(find_gguf(), files)
    assert [path.name for path in files.directory.iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
