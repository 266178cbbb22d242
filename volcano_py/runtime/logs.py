"""Structured logs on standard error, without secrets: one set-up for our own and the libraries' messages.

Use ``structlog.get_logger()`` anywhere. An event is a short sentence, and its facts are keys.
"""

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import structlog
from structlog.types import EventDict, Processor

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("console", "json")

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(
    r"token|authorization|passw|secret|credential|client.?key|private.?key|api.?key", re.IGNORECASE
)
_SECRET_TEXT = re.compile(r"\b(Bearer|Basic)(\s+)[A-Za-z0-9._~+/=-]+", re.IGNORECASE)
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_USER_INFO = re.compile(r"://[^\s/'\"]*@")  # of an address, such as that of a proxy
_MAX_DEPTH = 4  # of nested values that are searched for secrets


class LogOptionError(ValueError):
    """The log level or format does not exist."""


def configure_logging(level: str = "info", format_: str = "console", stream: TextIO | None = None) -> None:
    """Send structlog's and the standard library's messages, from this level up, to one stream in one format."""
    if level not in LEVELS:
        raise LogOptionError(f"log level {level!r} does not exist: use one of {', '.join(LEVELS)}")
    if format_ not in FORMATS:
        raise LogOptionError(f"log format {format_!r} does not exist: use one of {', '.join(FORMATS)}")
    stream = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a logger made at import must follow a later configuration
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(format_, stream)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)


def redact(_: Any, __: str, event: EventDict) -> EventDict:
    """Replace the values of secret-looking keys, and tokens inside any text."""
    return {key: REDACTED if _is_secret(key, value) else _clean(value, _MAX_DEPTH) for key, value in event.items()}


def _is_secret(key: str, value: Any) -> bool:
    # Numbers and flags under such keys ("token_age_s", "secrets": 3) are facts, not secrets.
    return isinstance(value, str | bytes | Mapping | list | tuple) and _SECRET_KEY.search(key) is not None


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        if "@" in value:
            value = _USER_INFO.sub(f"://{REDACTED}@", value)
        if "earer" not in value and "asic" not in value and "eyJ" not in value and "EARER" not in value:
            return value  # the usual case, without a regular expression
        return _JWT.sub(REDACTED, _SECRET_TEXT.sub(rf"\1\2{REDACTED}", value))
    if depth and isinstance(value, Mapping):
        return {
            key: REDACTED if isinstance(key, str) and _is_secret(key, inner) else _clean(inner, depth - 1)
            for key, inner in value.items()
        }
    if depth and isinstance(value, list | tuple):
        return type(value)([_clean(inner, depth - 1) for inner in value]) if type(value) in (list, tuple) else value
    return value


def _renderer(format_: str, stream: TextIO) -> Processor:
    if format_ == "json":
        return structlog.processors.JSONRenderer(default=str)
    return structlog.dev.ConsoleRenderer(colors=stream.isatty())
