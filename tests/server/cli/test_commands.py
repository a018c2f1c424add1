"""The command line: what it prints, what it writes, and how it fails."""

import io
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
import wave

import pytest
import structlog

from server.cli.client.loudspeaker import PROGRAMS
from server.cli.main import COMMANDS, main
from server.config.files import check_files
from server.config.settings import Settings, SettingsError
from server.serve import log_who_may_connect
from tests.server.bench import fake_service
from tests.server.loopback import serving

pytestmark = pytest.mark.usefixtures("python_logs_as_before")


def test_without_a_command_it_prints_its_help(capsys):
    assert main([]) == 0
    assert "serve" in capsys.readouterr().out


def test_help_and_mistakes_load_nothing_heavy():
    found = "import sys; from server.cli.main import main; main([]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "fastapi", "pydantic", "numpy", "anyio", "rich", "httpx2"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"examples:\n  nano-omni {command}" in capsys.readouterr().out


def test_ctrl_c_while_a_command_is_still_imported_is_quiet(monkeypatch, capsys):
    def interrupted(_name):
        raise KeyboardInterrupt

    monkeypatch.setattr("server.cli.main.import_module", interrupted)
    assert main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
    assert "--max-running" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_config_shows_what_is_in_force_and_where_it_comes_from(tmp_path, monkeypatch, capsys):
    (tmp_path / "settings.toml").write_text('api_keys = ["sk-one", "sk-two"]\nmax_running = 3')
    monkeypatch.setenv("NANO_OMNI_PORT", "9000")
    config = str(tmp_path / "settings.toml")
    assert main(["config", "--config", config, "--host", "::1", "--no-clean"]) == 0
    out = capsys.readouterr().out
    shown = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert shown["host"] == ["::1", "--host"]
    assert shown["port"] == ["9000", "NANO_OMNI_PORT"]
    assert shown["max_running"] == ["3", config]
    assert shown["clean"] == ["false", "--clean"]
    assert shown["max_waiting"] == ["32", "default"]
    assert shown["api_keys"] == ["2", "keys", config]
    assert "sk-" not in out


def test_a_spoken_text_is_played_where_something_plays(tmp_path, monkeypatch, capsys):
    player = tmp_path / PROGRAMS[0]
    player.write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/heard\n")
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["say", "Hello there.", "--model", "fake"]) == 0
    assert (tmp_path / "heard").stat().st_size == 960 * len("Hellothere.")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out.wav").exists()


def test_a_spoken_text_is_a_file_where_nothing_plays(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["say", "Hello there.", "--model", "fake"]) == 0
    assert (tmp_path / "out.wav").stat().st_size == 44 + 960 * len("Hellothere.")
    assert "out.wav" in capsys.readouterr().out


@pytest.mark.parametrize("own", [True, False])
def test_chat_answers_in_text_and_keeps_what_is_said(own, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "said.wav"
    ask = ["chat", "hello big world", "-o", str(path)]
    if own:
        assert main([*ask, "--model", "fake"]) == 0
    else:
        with serving(fake_service(port=0, api_keys="sk-one")) as server:
            monkeypatch.setenv("NANO_OMNI_API_KEY", "sk-one")
            assert main([*ask, "--url", server.url]) == 0
    assert capsys.readouterr().out == "You said: hello big world\n"
    with wave.open(str(path)) as file:
        assert file.getnframes() > 0


def test_chat_goes_on_in_text_where_nothing_plays(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\ntwo\n"))
    assert main(["chat", "--model", "fake"]) == 0
    out, said = capsys.readouterr()
    assert out == "You said: one\nYou said: two\n"
    assert said.count("nothing here can play it") == 1


def test_bench_says_how_it_went(capsys):
    with serving(fake_service(port=0)) as server:
        assert main(["bench", server.url, "--clients", "2", "--requests", "3"]) == 0
        assert "3 of 3 complete" in capsys.readouterr().out
        assert main(["bench", server.url, "--voice", "nobody", "--requests", "1"]) == 1
    assert "1 x HTTP 400" in capsys.readouterr().out


def test_models_are_listed(capsys):
    assert main(["models", "--model", "fake"]) == 0
    out = capsys.readouterr().out
    assert "fake-speech" in out
    assert "tts-1" in out
    assert "fake-low" in out


def test_models_are_listed_without_torch():
    found = (
        "import sys; from server.cli.main import main; sys.modules['torch'] = None;"
        "sys.exit(main(['models', '--model', 'piper-joe']))"
    )
    done = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("piper-joe")


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
        (["serve", "--port", "0", "--model", "fake", "--device", "cuda:0"], "setting device"),
        (["serve", "--port", "0", "--model", "fake", "--talker-device", "cuda:0"], "cuda:0"),
        (["serve", "--config", "/no/such/file"], "/no/such/file"),
        (["config", "--max-running", "0"], "--max-running"),
        (["chat", "hi", "--url", "127.0.0.1:9"], "127.0.0.1:9"),
        (["chat", "hi", "-o", "said.mp3", "--model", "fake"], ".wav"),
        (["chat", "hi", "--model", "no such model"], "no such model"),
    ],
)
def test_a_failure_is_one_line(arguments, said, capsys):
    assert main(arguments) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nano-omni: ")
    assert said in line


@pytest.mark.parametrize("command", ["serve", "config"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--api-keys-file", "/no/such/file"], "api_keys_file"),
        (["--api-keys-file", os.devnull], "no key"),
        (["--ssl-certfile", "/no/such/file"], "ssl_certfile"),
        (["--ssl-keyfile", "/no/such/file"], "ssl_certfile"),
    ],
)
def test_config_refuses_the_files_that_serve_refuses(command, arguments, said, capsys):
    assert main([command, *arguments]) == 1
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("nano-omni: setting ")
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
    command = [sys.executable, "-m", "server.cli.main", "serve", "--port", "0", "--model", "fake"]
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
        log_who_may_connect(Settings(host=host, api_keys=keys))
    assert [line["open_to"] for line in logs] == ([said] if said else [])


def test_a_key_that_is_not_the_certificates_is_one_line(tmp_path):
    for name in ("one", "two"):
        make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={name}"
        files = f"-keyout {tmp_path}/{name}.key -out {tmp_path}/{name}.crt"
        subprocess.run(f"{make} {files}".split(), check=True, capture_output=True)
    check_files(Settings(ssl_certfile=tmp_path / "one.crt", ssl_keyfile=tmp_path / "one.key"))
    with pytest.raises(SettingsError, match="ssl_certfile"):
        check_files(Settings(ssl_certfile=tmp_path / "one.crt", ssl_keyfile=tmp_path / "two.key"))


def test_serve_speaks_tls_and_below_a_path(tmp_path):
    files = (str(tmp_path / "crt"), str(tmp_path / "key"))
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    san = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = [*make.split(), *san, "-out", files[0], "-keyout", files[1]]
    subprocess.run(made, check=True, capture_output=True)
    chosen = {"ssl_certfile": files[0], "ssl_keyfile": files[1], "root_path": "/omni"}
    trusting = ssl.create_default_context(cafile=files[0])
    with serving(fake_service(port=0, **chosen)) as server:
        assert server.url.startswith("https://")
        for path in ("/omni/v1/models", "/v1/models", "/omni/health/ready"):
            with urllib.request.urlopen(server.url + path, context=trusting) as reply:
                assert reply.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url + "/omnivorous/v1/models", context=trusting)
