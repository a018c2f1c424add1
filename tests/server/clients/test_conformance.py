"""The suite of `make conformance` with the newest client, the one that is installed."""

import pytest

from tests.conformance import openai_python
from tests.conformance.checks import Target, checks_of
from tests.conformance.run import KEY, failing_service
from tests.server.bench import fake_service
from tests.server.loopback import serving


@pytest.fixture(scope="module")
def target():
    with (
        serving(fake_service(port=0, api_keys=KEY)) as server,
        serving(failing_service()) as faulty,
    ):
        yield Target(server.url, faulty.url, KEY)


@pytest.mark.parametrize("check", checks_of(openai_python), ids=lambda check: check.__name__[6:])
def test_the_newest_client(check, target):
    check(target)
