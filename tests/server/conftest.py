"""Fixtures for logging: the server's tests log warnings only, and restore the configuration."""

import logging

import pytest
import structlog


@pytest.fixture(autouse=True)
def quiet_logs():
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.configure(**before)


@pytest.fixture
def python_logs_as_before():
    """Restores the standard library's loggers after tests that configure them."""
    root, web = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, level, web_level = root.handlers[:], root.level, web.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    web.setLevel(web_level)
