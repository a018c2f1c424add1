"""The image's health check: healthy if and only if the server is ready, over HTTP and TLS."""

import subprocess
import sys
from pathlib import Path

from server.config.settings import Settings
from server.serving.service import Service
from tests.server.bench import ScriptedDeployment, ScriptedStage, fake_service
from tests.server.loopback import serving

SCRIPT = Path(__file__).parents[2] / "docker" / "healthcheck.py"


def check(port, **environment):
    """The exit status of the health check."""
    given = {"NANO_OMNI_PORT": str(port), **environment}
    return subprocess.run(
        [sys.executable, "-S", SCRIPT], env=given, stderr=subprocess.DEVNULL
    ).returncode


def test_a_ready_server_is_healthy():
    with serving(fake_service(port=0, api_keys="sk-one")) as server:
        assert check(server.port) == 0
        assert check(server.port, NANO_OMNI_SSL_CERTFILE="/crt") == 1


def test_a_server_that_lost_a_stage_is_unhealthy():
    made = ScriptedDeployment(ScriptedStage(), ScriptedStage(), ScriptedStage())
    with serving(Service(Settings(port=0), lambda: made)) as server:
        assert check(server.port) == 0
        made.is_up = False
        assert check(server.port) == 1


def test_no_server_is_unhealthy():
    assert check(9) == 1


def test_the_check_uses_tls_if_the_server_does(tmp_path):
    files = {"ssl_certfile": str(tmp_path / "crt"), "ssl_keyfile": str(tmp_path / "key")}
    out = ["-out", files["ssl_certfile"], "-keyout", files["ssl_keyfile"]]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*make, *out], check=True, capture_output=True)
    with serving(fake_service(port=0, **files)) as server:
        assert check(server.port, NANO_OMNI_SSL_CERTFILE=files["ssl_certfile"]) == 0
