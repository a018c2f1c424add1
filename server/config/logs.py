"""One line for each thing that happens: for people on a terminal, JSON elsewhere.

The web server's own records come out the same way. Texts of users are in no record of ours, and
tracebacks are written without the values of variables.
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

# sse_starlette's debug records hold the events; httpx2 and httpcore2 are clients of ours.
QUIET = ("uvicorn", "sse_starlette", "asyncio", "httpx2", "httpcore2")
SHARED: tuple[Processor, ...] = (
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logs(settings: Settings) -> None:
    """Send all records to standard error. Called once, by the process's command."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(_wants_json(settings)))
    handler.addFilter(_is_news)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for library in QUIET:
        logging.getLogger(library).setLevel(max(level, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
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
        foreign_pre_chain=list(SHARED),
    )


def _is_news(record: logging.LogRecord) -> bool:
    """A stream that broke has its line already; the web server's traceback adds nothing."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, BrokenStreamError)
