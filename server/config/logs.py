"""Configures the log: one line per event, readable text on a terminal and JSON elsewhere.

The web server's own records have the same format. Our records contain no text of users, unless
`log_texts` is set. Tracebacks are written without the values of variables.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

from server.errors import BrokenStreamError

if TYPE_CHECKING:
    from structlog.typing import Processor

    from server.config.settings import Settings

# Debug records of sse_starlette contain the events; httpx2 and httpcore2 belong to our clients.
QUIET_LIBRARIES = ("uvicorn", "sse_starlette", "asyncio", "httpx2", "httpcore2")
SHARED_PROCESSORS: tuple[Processor, ...] = (
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logs(settings: Settings) -> None:
    """Send all records to standard error. The command of the process calls this once."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(_wants_json(settings)))
    handler.addFilter(_is_not_logged_yet)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for library in QUIET_LIBRARIES:
        logging.getLogger(library).setLevel(max(level, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _wants_json(settings: Settings) -> bool:
    if settings.log_format == "auto":
        return not sys.stderr.isatty()
    return settings.log_format == "json"


def _formatter(as_json: bool) -> logging.Formatter:
    renderers: tuple[Processor, ...] = (
        (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())
        if as_json
        else (structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),)
    )
    return structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        foreign_pre_chain=list(SHARED_PROCESSORS),
    )


def _is_not_logged_yet(record: logging.LogRecord) -> bool:
    """False for the web server's traceback of a broken stream, which has a line of its own."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, BrokenStreamError)
