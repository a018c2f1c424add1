"""The command line: what it prints, what it writes, and how it fails."""

import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
import wave

import pytest
import structlog

from server.cli import main
from server.serve import note_openness
from server.settings import Settings


@pytest.fixture(autouse=True)
def logs_as_before():
    root, web = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, level, web_level = root.handlers[:], root.level, web.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    web.setLevel(web_level)


def test_without_a_command_it_prints_its_help(capsys):
    assert main([]) == 0
    assert "serve" in capsys.readouterr().out


def test_models_are_listed(capsys):
    assert main(["models", "--model", "fake"]) == 0
    out = capsys.readouterr().out
    assert "fake-speech" in out
    assert "tts-1" in out
    assert "fake-low" in out


def test_say_writes_a_file_of_true_size(tmp_path, capsys):
    path = tmp_path / "out.wav"
    assert main(["say", "Hello there.", "-o", str(path), "--model", "fake"]) == 0
    with wave.open(str(path)) as file:
        assert file.getnframes() == 480 * len("Hellothere.")
    assert path.stat().st_size == 44 + 960 * len("Hellothere.")
    assert str(path) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["say", "...", "--model", "fake"], "nothing to speak"),
        (["say", "hi", "--model", "fake", "--voice", "nobody"], "no such voice"),
        (["say", "hi", "--model", "no such model"], "no such model"),
        (["models", "--model", "no such model"], "no such model"),
        (["say", "hi", "--model", "fake", "-o", "/no/such/folder/out.wav"], "/no/such/folder"),
        (["serve", "--port", "70000"], "port"),
        (["serve", "--host", "192.0.2.1"], "address"),
        (["serve", "--api-keys-file", "/no/such/file"], "api_keys_file"),
    ],
)
def test_a_failure_is_one_line(arguments, said, capsys):
    assert main(arguments) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nano-omni: ")
    assert said in line


def test_a_port_that_is_taken_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), "--model", "fake"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert "in use" in line


def test_a_model_that_does_not_start_ends_the_server_with_one_line(capsys):
    assert main(["serve", "--port", "0", "--model", "no such model"]) == 1
    assert "no such model" in capsys.readouterr().err


def test_serve_says_where_and_ends_on_a_signal():
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", "fake"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline().decode()
        url = line.split()[-1]
        with urllib.request.urlopen(f"{url}/models") as reply:
            assert reply.status == 200
        os.kill(process.pid, signal.SIGTERM)
        _, logged = process.communicate(timeout=20)
    assert line.startswith("nano-omni is ready on http://127.0.0.1:")
    assert process.returncode in (0, -signal.SIGTERM)
    assert b'"path": "/v1/models"' in logged
    assert b"Traceback" not in logged


@pytest.mark.parametrize(
    ("host", "keys", "said"),
    [
        ("127.0.0.1", "", "this machine"),
        ("::1", "", "this machine"),
        ("localhost", "", "this machine"),
        ("0.0.0.0", "", "everyone who can connect"),
        ("example.org", "", "everyone who can connect"),
        ("0.0.0.0", "sk-one", None),
    ],
)
def test_a_server_without_keys_says_who_can_use_it(host, keys, said):
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as logs:
        note_openness(Settings(host=host, api_keys=keys))
    assert [line["open_to"] for line in logs] == ([said] if said else [])
