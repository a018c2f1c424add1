"""The command line: its output, its files, its errors and its exit status."""

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


def test_help_imports_no_large_packages():
    program = "import sys; from server.cli.main import main; main([]); print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "fastapi", "pydantic", "numpy", "anyio", "rich", "httpx2"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"examples:\n  nano-omni {command}" in capsys.readouterr().out


def test_ctrl_c_during_the_import_of_a_command_prints_nothing(monkeypatch, capsys):
    def interrupted(_name):
        raise KeyboardInterrupt

    monkeypatch.setattr("server.cli.main.import_module", interrupted)
    assert main(["serve"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_covers_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
    assert "--max-running" in script
    assert "--stages.talker.device" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_config_shows_each_value_and_where_it_comes_from(tmp_path, monkeypatch, capsys):
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


def test_config_shows_where_the_settings_of_a_stage_come_from(tmp_path, monkeypatch, capsys):
    (tmp_path / "settings.toml").write_text("[stages.talker]\ngpus = 0.5\nreplicas = 2\n")
    monkeypatch.setenv("NANO_OMNI_STAGES__TALKER__REPLICAS", "3")
    config = str(tmp_path / "settings.toml")
    assert main(["config", "--config", config, "--stages.talker.device", "cuda:1"]) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert shown["stages.talker.device"] == ["cuda:1", "--stages.talker.device"]
    assert shown["stages.talker.replicas"] == ["3", "NANO_OMNI_STAGES__TALKER__REPLICAS"]
    assert shown["stages.talker.gpus"] == ["0.5", config]
    assert shown["stages.talker.cpus"] == ["unset", "default"]


def test_options_of_lists_may_be_repeated(capsys):
    given = ["--model", "one,two", "--model", "three", "--aliases", "a=one", "--aliases", "b=two"]
    assert main(["config", *given]) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert shown["model"] == ["one,", "two,", "three", "--model"]
    assert shown["aliases"] == ["a=one,", "b=two", "--aliases"]


@pytest.mark.parametrize("command", ["serve", "say", "config"])
def test_help_has_one_paragraph_for_the_settings_of_stages(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "ROLE: listener, thinker, talker, code2wav" in out
    assert out.count("--stages.") == 2


@pytest.mark.parametrize("option", ["--stages.speaker.device", "--stages.talker.colour"])
def test_an_option_of_an_unknown_role_or_key_is_an_error(option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["config", option, "x"])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err


def test_say_plays_through_an_installed_player(tmp_path, monkeypatch, capsys):
    player = tmp_path / PROGRAMS[0]
    player.write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/played\n")
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["say", "Hello there.", "--model", "fake"]) == 0
    assert (tmp_path / "played").stat().st_size == 960 * len("Hellothere.")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "out.wav").exists()


def test_say_writes_a_file_if_no_player_is_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["say", "Hello there.", "--model", "fake"]) == 0
    assert (tmp_path / "out.wav").stat().st_size == 44 + 960 * len("Hellothere.")
    assert "out.wav" in capsys.readouterr().out


@pytest.mark.parametrize("is_local", [True, False])
def test_chat_prints_the_text_and_saves_the_voice(is_local, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "replies.wav"
    command = ["chat", "hello big world", "-o", str(path)]
    if is_local:
        assert main([*command, "--model", "fake"]) == 0
    else:
        with serving(fake_service(port=0, api_keys="sk-one")) as server:
            monkeypatch.setenv("NANO_OMNI_API_KEY", "sk-one")
            assert main([*command, "--url", server.url]) == 0
    assert capsys.readouterr().out == "You said: hello big world\n"
    with wave.open(str(path)) as file:
        assert file.getnframes() > 0


def test_chat_continues_in_text_if_no_player_is_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\ntwo\n"))
    assert main(["chat", "--model", "fake"]) == 0
    out, err = capsys.readouterr()
    assert out == "You said: one\nYou said: two\n"
    assert err.count("cannot play audio") == 1


def test_bench_prints_a_summary_and_fails_if_a_request_fails(capsys):
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
    program = (
        "import sys; from server.cli.main import main; sys.modules['torch'] = None;"
        "sys.exit(main(['models', '--model', 'piper-joe']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("piper-joe")


def test_say_writes_a_wav_file_with_the_right_length(tmp_path, capsys):
    path = tmp_path / "out.wav"
    assert main(["say", "Hello there.", "-o", str(path), "--model", "fake"]) == 0
    with wave.open(str(path)) as file:
        assert file.getnframes() == 480 * len("Hellothere.")
    assert path.stat().st_size == 44 + 960 * len("Hellothere.")
    assert str(path) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["say", "...", "--model", "fake"], "nothing to speak"),
        (["say", "hi", "--model", "fake", "--voice", "nobody"], "no such voice"),
        (["say", "hi", "--model", "no such model"], "no such model"),
        (["models", "--model", "no such model"], "no such model"),
        (["say", "hi", "--model", "fake", "-o", "/no/such/folder/out.wav"], "/no/such/folder"),
        (["serve", "--port", "70000"], "port"),
        (["serve", "--host", "192.0.2.1"], "address"),
        (["serve", "--port", "0", "--model", "fake", "--device", "cuda:0"], "setting device"),
        (["serve", "--port", "0", "--model", "fake", "--stages.talker.device", "cuda:0"], "cuda:0"),
        (["serve", "--config", "/no/such/file"], "/no/such/file"),
        (["config", "--max-running", "0"], "--max-running"),
        (["config", "--stages.talker.gpus", "-1"], "(from --stages.talker.gpus)"),
        (["models", "--model", "fake", "--model", "fake", "--aliases", "tts-1=nobody"], "nobody"),
        (["chat", "hi", "--url", "127.0.0.1:9"], "127.0.0.1:9"),
        (["chat", "hi", "-o", "replies.mp3", "--model", "fake"], ".wav"),
        (["chat", "hi", "--model", "no such model"], "no such model"),
    ],
)
def test_an_error_is_printed_as_one_line(arguments, message, capsys):
    assert main(arguments) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("nano-omni: ")
    assert message in line


@pytest.mark.parametrize("command", ["serve", "config"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--api-keys-file", "/no/such/file"], "api_keys_file"),
        (["--api-keys-file", os.devnull], "no key"),
        (["--ssl-certfile", "/no/such/file"], "ssl_certfile"),
        (["--ssl-keyfile", "/no/such/file"], "ssl_certfile"),
    ],
)
def test_config_refuses_the_files_that_serve_refuses(command, arguments, message, capsys):
    assert main([command, *arguments]) == 1
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("nano-omni: setting ")
    assert message in line


def test_a_port_in_use_is_printed_as_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), "--model", "fake"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert "in use" in line


def test_serve_ends_with_one_line_if_the_model_does_not_start(capsys):
    assert main(["serve", "--port", "0", "--model", "no such model"]) == 1
    assert "no such model" in capsys.readouterr().err


def test_serve_prints_its_url_and_ends_on_sigterm():
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
    ("host", "keys", "open_to"),
    [
        ("127.0.0.1", "", "this machine"),
        ("::1", "", "this machine"),
        ("localhost", "", "this machine"),
        ("0.0.0.0", "", "everyone who can connect"),
        ("example.org", "", "everyone who can connect"),
        ("0.0.0.0", "sk-one", None),
    ],
)
def test_a_server_without_keys_logs_who_can_use_it(host, keys, open_to):
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as logs:
        log_who_may_connect(Settings(host=host, api_keys=keys))
    assert [line["open_to"] for line in logs] == ([open_to] if open_to else [])


def test_a_key_of_another_certificate_is_refused(tmp_path):
    for name in ("one", "two"):
        make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={name}"
        files = f"-keyout {tmp_path}/{name}.key -out {tmp_path}/{name}.crt"
        subprocess.run(f"{make} {files}".split(), check=True, capture_output=True)
    check_files(Settings(ssl_certfile=tmp_path / "one.crt", ssl_keyfile=tmp_path / "one.key"))
    with pytest.raises(SettingsError, match="ssl_certfile"):
        check_files(Settings(ssl_certfile=tmp_path / "one.crt", ssl_keyfile=tmp_path / "two.key"))


def test_serve_uses_tls_and_a_root_path(tmp_path):
    files = (str(tmp_path / "crt"), str(tmp_path / "key"))
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    san = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = [*make.split(), *san, "-out", files[0], "-keyout", files[1]]
    subprocess.run(made, check=True, capture_output=True)
    settings = {"ssl_certfile": files[0], "ssl_keyfile": files[1], "root_path": "/omni"}
    tls_context = ssl.create_default_context(cafile=files[0])
    with serving(fake_service(port=0, **settings)) as server:
        assert server.url.startswith("https://")
        for path in ("/omni/v1/models", "/v1/models", "/omni/health/ready"):
            with urllib.request.urlopen(server.url + path, context=tls_context) as reply:
                assert reply.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url + "/omnivorous/v1/models", context=tls_context)
