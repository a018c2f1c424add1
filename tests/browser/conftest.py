"""A headless browser for the tests of the playground, and a recorder of the audio that it plays."""

import asyncio
import logging
import shutil
from contextlib import contextmanager
from urllib.parse import quote

import anyio.lowlevel
import numpy as np
import pytest
import structlog
from playwright.sync_api import expect, sync_playwright

from server.config.settings import Settings
from server.serving.service import Service
from tests.server.bench import ScriptedDeployment, ScriptedStage, fake_service
from tests.server.loopback import serving

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WAIT_MS = 20_000  # at most; the machine may be busy

# An audio worklet that records every sample that the page sends to the loudspeaker.
RECORDER = "data:text/javascript," + quote("""
registerProcessor("recorder", class extends AudioWorkletProcessor {
  process([input]) {
    if (input[0]) this.port.postMessage(Array.from(input[0]));
    return true;
  }
});
""")
RECORD_SCRIPT = """
window.recorded = [];
const resume = AudioContext.prototype.resume;
const connect = AudioNode.prototype.connect;
AudioContext.prototype.resume = async function () {
  await this.audioWorklet.addModule("RECORDER");
  this.recorder = new AudioWorkletNode(this, "recorder");
  this.recorder.port.onmessage = ({ data }) => window.recorded.push(...data);
  for (const node of this.early ?? []) connect.call(node, this.recorder);
  return resume.call(this);
};
AudioNode.prototype.connect = function (to, ...rest) {
  if (to === this.context.destination) {
    if (this.context.recorder) connect.call(this, this.context.recorder);
    else (this.context.early ??= []).push(this);
  }
  return connect.call(this, to, ...rest);
};
""".replace("RECORDER", RECORDER)


@pytest.fixture(autouse=True)
def quiet_logs():
    """Do not log errors: to format a traceback in colour takes seconds."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def launch_chromium(driver):
    """Start Chromium. Returns None if none is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        return None
    # Chromium has no sandbox for root. It opens only our own page.
    return driver.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as driver:
        browser = launch_chromium(driver)
        if browser is None:
            pytest.skip("Chromium is not installed; run `make browser`")
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens the page of a server. Requests to other servers, and errors in the page, are failures.

    `tab`: the URL's fragment, such as "#chat". `allow_scripts`: let the test add its own scripts,
    which the page's content security policy forbids, and record the audio.
    """
    pages = []

    def open_page(url, tab="", *, allow_scripts=False, **options):
        context = browser.new_context(bypass_csp=allow_scripts, **options)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        if allow_scripts:
            page.add_init_script(RECORD_SCRIPT)
        errors = []
        page.on("request", lambda sent: sent.url.startswith(url) or errors.append(sent.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if is_error(line) else None)
        page.goto(f"{url}/{tab}")
        pages.append((context, errors))
        return page

    yield open_page
    for context, errors in pages:
        context.close()
        assert errors == []


def is_error(line):
    """Whether a console line is an error of the page.

    The browser itself logs a line for each refused request. They do not count: the page shows them.
    """
    return line.type in ("error", "warning") and not line.text.startswith("Failed to load resource")


def played(page):
    """The samples that the page played, int16, without leading and trailing zeros."""
    samples = np.rint(np.array(page.evaluate("() => window.recorded")) * 32768).astype(np.int16)
    return np.trim_zeros(samples)


@pytest.fixture(scope="module")
def fake_url():
    with serving(fake_service(port=0)) as address:
        yield address.url


class ScriptedServer:
    """A server with scripted stages that runs in another thread."""

    def __init__(self, address, service, deployment):
        self.url = address.url
        self._address = address
        self._service = service
        self.deployment = deployment

    def call(self, function, *args):
        """Run `function` in the server's thread."""
        self._address.call(function, *args)

    def report(self, *items):
        """Let the last stage report these items."""
        for item in items:
            self.call(self.deployment.speech[1].report, item)

    def wait(self, coroutine):
        """Run a coroutine in the server's thread, and wait for its result."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._address.loop)
        return future.result(WAIT_MS / 1000)

    async def until_idle(self):
        """Wait until no request is running."""
        while self._service.admission.stats().num_running:
            await anyio.lowlevel.checkpoint()


@contextmanager
def scripted_server(*sounds, **settings):
    """A server whose speech stage reports `sounds`, and then what the test tells it to report."""
    deployments = []

    def deploy():
        stages = ScriptedStage(), ScriptedStage(), ScriptedStage(*sounds)
        deployments.append(ScriptedDeployment(*stages))
        return deployments[0]

    service = Service(Settings(port=0, **settings), deploy)
    with serving(service) as address:
        server = ScriptedServer(address, service, deployments[0])
        yield server
        server.wait(service.abort_requests())
