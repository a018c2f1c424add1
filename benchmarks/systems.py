"""The speech servers that are compared: how to start each, send requests and decode its audio."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.effort import WARM_UPS
from benchmarks.environments import environment, versions, voice_of
from benchmarks.load import Client, Plan, load, together
from benchmarks.measured import Batch
from benchmarks.processes import Watch, cpu_s, free_port, python_of, running
from benchmarks.texts import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RIVALS = Path(__file__).parent / "rivals"
PIPER = "piper HTTP"
LITSERVE = "LitServe + piper"
OURS = "nano-omni float32"
PROCESSES = "nano-omni float32, processes"
BFLOAT16 = "nano-omni bfloat16"


@dataclass(frozen=True, slots=True)
class System:
    """A speech server. `{port}` in its `command` is replaced by the port.

    `kind` and `rate_hz` are for `sound.decode_body`. `versions` go into the results.
    """

    name: str
    command: tuple[str, ...]
    health: str
    path: str
    kind: str
    rate_hz: int
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False

    def bodies(self, count: int, first: int = 0) -> list[dict[str, Any]]:
        """The bodies of `count` requests, for the texts from number `first` on."""
        return [self._body(text(first + k)) for k in range(count)]

    def _body(self, spoken: str) -> dict[str, Any]:
        if self.is_ours:
            return {"model": "tts-1", "voice": "joe", "input": spoken, "response_format": "pcm"}
        return {"text": spoken}

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """Run the server while the block runs. It is warmed up before."""
        port = free_port()
        command = [word.replace("{port}", str(port)) for word in self.command]
        with running(command, port, self.health, self.settings) as pid:
            server = Server(self, pid, port)
            server.ask(together(self.bodies(WARM_UPS, first=200), 1))
            yield server


@dataclass(frozen=True, slots=True)
class Server:
    """A running system."""

    system: System
    pid: int
    port: int

    def ask(self, clients: list[Client], *, with_memory: bool = False) -> Batch:
        """Run clients against it. Measure memory only if `with_memory`, as that costs time."""
        system = self.system
        plan = Plan(self.port, system.path, system.kind, system.rate_hz, clients)
        if with_memory:
            with Watch(self.pid) as watch:
                outcomes = load(plan)
            return Batch(outcomes, watch.cpu_s, watch.peak_mb)
        began_s = cpu_s(self.pid)
        outcomes = load(plan)
        return Batch(outcomes, cpu_s(self.pid) - began_s)


def piper() -> System:
    """piper's HTTP server. It answers with whole WAV files."""
    folder = environment("piper")
    voice = str(voice_of(folder))
    server = ("-m", "piper.http_server", "--host", "127.0.0.1", "--port", "{port}", "-m", voice)
    return System(
        PIPER,
        (python_of(folder), *server),
        "/info",
        "/synthesize",
        "wav",
        22_050,
        versions=versions(folder, ("piper-tts", "onnxruntime", "flask")),
    )


def litserve() -> System:
    """LitServe around piper. It streams raw PCM sentence by sentence."""
    folder = environment("litserve")
    script = str(RIVALS / "litserve_piper.py")
    return System(
        LITSERVE,
        (python_of(folder), script, str(voice_of(folder)), "{port}"),
        "/health",
        "/predict",
        "pcm",
        22_050,
        versions=versions(folder, ("litserve", "piper-tts", "onnxruntime", "uvicorn")),
    )


def ours(name: str, max_running: int, *, dtype: str, executor: str = "thread") -> System:
    """Our server with the speech model only. `max_waiting` is the same as `max_running`."""
    serve = ("-m", "server.cli.main", "serve", "--port", "{port}", "--model", "piper-joe")
    return System(
        name,
        (python_of(None), *serve, "--executor", executor, "--log-level", "warning"),
        "/health/ready",
        "/v1/audio/speech",
        "pcm",
        24_000,
        settings={
            "NANO_OMNI_STAGES__CODE2WAV__DTYPE": dtype,
            "NANO_OMNI_MAX_RUNNING": str(max_running),
            "NANO_OMNI_MAX_WAITING": str(max_running),
        },
        is_ours=True,
    )


def has_bfloat16() -> bool:
    """Whether the processor has instructions for bfloat16."""
    flags = Path("/proc/cpuinfo").read_text().split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def all_systems(max_running: int) -> list[System]:
    """All systems, the rivals first."""
    found = [
        piper(),
        litserve(),
        ours(OURS, max_running, dtype="float32"),
        ours(PROCESSES, max_running, dtype="float32", executor="process"),
    ]
    if has_bfloat16():
        found.append(ours(BFLOAT16, max_running, dtype="bfloat16"))
    return found
