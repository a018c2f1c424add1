"""`make conformance`: third-party clients against a server of fakes, and a table of the results.

The checks of `nano-omni selftest` run too. Each client has its own environment below `.venvs/`,
which the first run makes from the pinned requirements in this folder.
`python -m tests.conformance.run [NAME...]` runs only the named clients.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from server.cli.client.api import ServerAddress, open_client
from server.cli.selftest.run import checks, subject_of
from server.cli.selftest.run import run as run_check
from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd, TextChunk
from tests.server.bench import ScriptedDeployment, ScriptedStage, fake_service, tone
from tests.server.loopback import serving

HERE = Path(__file__).parent
VENVS = HERE.parent.parent / ".venvs"
KEY = "sk-conformance"
NODE = "openai@6.49.0"
# Features that llm-comply tests and our models refuse with a 400: tools and images.
REFUSED = ("Tool Calling", "Image Input")


@dataclass(frozen=True)
class Client:
    """One client: its environment and its suite, a file in this folder or a program."""

    name: str
    environment: str
    suite: str
    arguments: tuple[str, ...] = ()


COMPLY = "llm-comply"
CLIENTS = (
    Client("openai 1", "openai-1", "openai_python"),
    Client("openai 2", "openai-2", "openai_python"),
    Client("openai 3", "openai-3", "openai_python"),
    Client("node", "node", "openai_node.mjs"),
    Client("livekit", "livekit", "livekit_tts"),
    Client("pipecat", "pipecat", "pipecat_services"),
    Client("comply chat", "comply", COMPLY, ("--format", "openai-chat", "-m", "fake-chat")),
    Client("comply responses", "comply", COMPLY, ("--format", "open-responses", "-m", "fake-chat")),
)


def python_of(name: str) -> Path:
    """The interpreter of an environment. The environment is made if it is missing or outdated."""
    home, pinned = VENVS / name, HERE / "requirements" / f"{name}.txt"
    stamp = home / "made"
    if not stamp.exists() or stamp.read_text() != pinned.read_text():
        venv.create(home, clear=True, with_pip=True)
        pip = (home / "bin" / "pip", "--disable-pip-version-check", "install", "-q", "-r", pinned)
        subprocess.run(pip, check=True)
        stamp.write_text(pinned.read_text())
    return home / "bin" / "python"


def node_home() -> Path:
    """The folder with the client for Node. The suite must be in it to find the client."""
    home = VENVS / "node"
    stamp = home / NODE
    if not stamp.exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(("npm", "install", "--silent", "--prefix", home, NODE), check=True)
        stamp.touch()
    return home


def command_of(client: Client, url: str, faulty_url: str) -> tuple[str | Path, ...]:
    """The command that runs a client's suite."""
    target = (url, faulty_url, KEY)
    if client.environment == "node":
        suite = node_home() / client.suite
        suite.write_text((HERE / client.suite).read_text())
        return ("node", suite, *target)
    python = python_of(client.environment)
    if client.suite == COMPLY:
        return (python.parent / COMPLY, "-u", f"{url}/v1", "-k", KEY, "--json", *client.arguments)
    return (python, HERE / "checks.py", client.suite, *target)


def reports_of(client: Client, output: str) -> list[dict[str, object]]:
    """The reports of a suite, in the form that checks.py writes."""
    if client.suite != COMPLY:
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [_comply_report(result) for result in json.loads(output)["results"]]


def _comply_report(result: dict[str, Any]) -> dict[str, object]:
    why = "; ".join(result.get("errors") or [])
    refused = result["name"] in REFUSED and why.startswith("HTTP 400 ")
    return {
        "check": result["name"],
        "ok": refused or result["status"] in ("passed", "skipped"),
        "why": why,
    }


def run(client: Client, url: str, faulty_url: str) -> bool:
    """Run one client's suite and print its result. Returns whether all checks passed."""
    command = command_of(client, url, faulty_url)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    reports = reports_of(client, done.stdout)
    failed = [report for report in reports if not report["ok"]]
    if not reports:
        _print(done.stderr)
    for report in failed:
        _print(f"  {client.name}: {report['check']}: {report['why']}")
    _print(f"{client.name:12} {len(reports) - len(failed):3} of {len(reports)} passed")
    return bool(reports) and not failed


def selftest(url: str) -> bool:
    """Run the checks of `nano-omni selftest` and print the result. Returns whether all passed."""
    with open_client(ServerAddress(url, KEY)) as client:
        subject = subject_of(client)
        found = [run_check(check, subject) for check in checks()]
    failed = [report for report in found if report.outcome != "ok"]
    for report in failed:
        _print(f"  selftest: {report.check}: {report.outcome}: {report.reason}")
    _print(f"{'selftest':12} {len(found) - len(failed):3} of {len(found)} passed")
    return not failed


def failing_service() -> Service:
    """A server whose stages fail after their first output."""
    failure = RequestError("r", "no")

    def deploy() -> ScriptedDeployment:
        thinker = ScriptedStage(TextChunk("Hi", 1), failure)
        return ScriptedDeployment(
            thinker, ScriptedStage(SpeechEnd(1)), ScriptedStage(tone(24_000), failure)
        )

    return Service(Settings(port=0, api_keys=(KEY,)), deploy)


def main() -> int:
    """Run the suites; the exit status."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    names = sys.argv[1:] or [*(client.name for client in CLIENTS), "selftest"]
    with (
        serving(fake_service(port=0, api_keys=(KEY,))) as server,
        serving(failing_service()) as faulty,
    ):
        passed = [run(client, server.url, faulty.url) for client in CLIENTS if client.name in names]
        if "selftest" in names:
            passed.append(selftest(server.url))
    return 0 if passed and all(passed) else 1


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
