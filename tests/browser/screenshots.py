"""Takes the screenshots of the playground in docs/ while the embedded models speak."""

from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

from server.config.logs import configure_logs
from server.config.settings import Settings
from server.serving.service import Service
from stages.models.registry import build
from stages.runtime.placement import BuildConfig
from tests.browser.conftest import launch_chromium
from tests.server.loopback import serving

DOCS = Path(__file__).parents[2] / "docs"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def main():
    """Serve the embedded models, and write the screenshots."""
    configure_logs(Settings(log_level="error"))
    settings = Settings(port=0, debug_routes=True)
    deploy = partial(build, ["embedded"], BuildConfig(settings.cache_dir))
    with serving(Service(settings, deploy), start_s=120) as address, sync_playwright() as driver:
        browser = launch_chromium(driver)
        for scheme in ("light", "dark"):
            page = open_page(browser, address.url, color_scheme=scheme, viewport=DESKTOP)
            page.get_by_role("button", name="Play").click()
            page.locator(".said").nth(4).wait_for()
            page.screenshot(path=DOCS / f"playground-{scheme}.png")
        page = open_page(browser, f"{address.url}/#chat", color_scheme="light", viewport=PHONE)
        page.get_by_label("Message").fill("Tell me about the sea.")
        page.get_by_role("button", name="Send").click()
        page.locator(".said").nth(9).wait_for()
        page.screenshot(path=DOCS / "playground-phone.png", full_page=True)
        browser.close()


def open_page(browser, url, **options):
    """Open the page, and wait until the server is ready."""
    page = browser.new_context(**options, device_scale_factor=2).new_page()
    page.goto(url)
    page.locator("#health[data-state=ready]").wait_for()
    return page


if __name__ == "__main__":
    main()
