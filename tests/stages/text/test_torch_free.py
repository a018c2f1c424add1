"""The server may import the text front end and the contract, which never load torch."""

import subprocess
import sys
from pkgutil import walk_packages

import pytest

import stages.contract
import stages.text

MODULES = [
    module.name
    for package in (stages.contract, stages.text)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
]
PIPER_CONFIGS = [
    "stages.models.piper.talker_config",
    "stages.models.piper.code2wav_config",
]


@pytest.mark.parametrize("modules", [MODULES, PIPER_CONFIGS], ids=["text", "piper"])
def test_torch_is_not_loaded(modules):
    code = f"import sys, {', '.join(modules)}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_making_a_phonemizer_does_not_load_torch():
    make = "from stages.text.phonemizer import make_phonemizer; make_phonemizer('auto', 'en-us')"
    code = f"import sys; {make}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
