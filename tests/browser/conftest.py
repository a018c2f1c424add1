"""A real browser, without a screen, that is driven as a person would; and an ear on its sound."""

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

# Whatever goes to the loudspeaker goes to an ear too, which keeps every sample.
EAR = "data:text/javascript," + quote("""
registerProcessor("ear", class extends AudioWorkletProcessor {
  process([input]) {
    if (input[0]) this.port.postMessage(Array.from(input[0]));
    return true;
  }
});
""")
LISTEN = """
window.sampled = [];
const resume = AudioContext.prototype.resume;
const connect = AudioNode.prototype.connect;
AudioContext.prototype.resume = async function () {
  await this.audioWorklet.addModule("EAR");
  this.ear = new AudioWorkletNode(this, "ear");
  this.ear.port.onmessage = ({ data }) => window.sampled.push(...data);
  for (const node of this.early ?? []) connect.call(node, this.ear);
  return resume.call(this);
};
AudioNode.prototype.connect = function (to, ...rest) {
  if (to === this.context.destination) {
    if (this.context.ear) connect.call(this, this.context.ear);
    else (this.context.early ??= []).push(this);
  }
  return connect.call(this, to, ...rest);
};
""".replace("EAR", EAR)


@pytest.fixture(autouse=True)
def quiet_logs():
    """A traceback in colour takes seconds."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def chromium(driver):
    """The browser, or None where none is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        return None
    # For root it has no sandbox; it opens only our own page.
    return driver.chromium.launch(executable_path=program, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as driver:
        browser = chromium(driver)
        if browser is None:
            pytest.skip("there is no Chromium: `make browser` installs Debian's")
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens the page of a server. What it asked of others, and what went wrong in it, are failures.

    `tab`: where in it, as in "#chat". `ear`: what is heard is kept; as an ear is no script of the
    page's, the policy must let it in.
    """
    pages = []

    def open_page(url, tab="", *, ear=False, **options):
        context = browser.new_context(bypass_csp=ear, **options)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        if ear:
            page.add_init_script(LISTEN)
        wrong = []
        page.on("request", lambda sent: sent.url.startswith(url) or wrong.append(sent.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
        page.goto(f"{url}/{tab}")
        pages.append((context, wrong))
        return page

    yield open_page
    for context, wrong in pages:
        context.close()
        assert wrong == []


def is_wrong(said):
    """The browser notes refusals of the server by itself; those are the page's to show."""
    return said.type in ("error", "warning") and not said.text.startswith("Failed to load resource")


def heard(page):
    """int16 [samples] that went to the loudspeaker, from the first to the last that is not 0."""
    samples = np.rint(np.array(page.evaluate("() => window.sampled")) * 32768).astype(np.int16)
    return np.trim_zeros(samples)


@pytest.fixture(scope="module")
def fake_url():
    with serving(fake_service(port=0)) as address:
        yield address.url


class Scripted:
    """The server over scripted stages, from another thread."""

    def __init__(self, address, service, deployment):
        self.url = address.url
        self._address = address
        self._service = service
        self.deployment = deployment

    def call(self, function, *args):
        """Run `function` in the server's thread."""
        self._address.call(function, *args)

    def say(self, *items):
        """The last stage reports these next."""
        for item in items:
            self.call(self.deployment.speech[1].report, item)

    def wait(self, waiting):
        """Wait for a coroutine in the server's thread."""
        return asyncio.run_coroutine_threadsafe(waiting, self._address.loop).result(WAIT_MS / 1000)

    async def is_free(self):
        """No request holds a place any more."""
        while self._service.admission.stats().num_running:
            await anyio.lowlevel.checkpoint()


@contextmanager
def scripted_server(*sounds, **settings):
    """Speech is these sounds, and then what the test says."""
    made = []

    def deploy():
        stages = ScriptedStage(), ScriptedStage(), ScriptedStage(*sounds)
        made.append(ScriptedDeployment(*stages))
        return made[0]

    service = Service(Settings(port=0, **settings), deploy)
    with serving(service) as address:
        server = Scripted(address, service, made[0])
        yield server
        server.wait(service.abort_requests())
