"""Logs: one format for all, and no secrets."""

import io
import json
import logging
from typing import Any

import pytest
import structlog

from volcano_py.runtime.logs import LogOptionError, configure_logging


def logged(level: str = "info", **event: Any) -> dict[str, Any]:
    """Return one event as the JSON that comes out."""
    stream = io.StringIO()
    configure_logging(level, "json", stream)
    structlog.get_logger().info("something happened", **event)
    line: dict[str, Any] = json.loads(stream.getvalue())
    return line


def test_an_event_is_one_json_line_with_level_and_utc_time() -> None:
    line = logged(task="ns/a", node="n1")

    assert (line["event"], line["level"], line["task"], line["node"]) == ("something happened", "info", "ns/a", "n1")
    assert line["time"].endswith("Z")


def test_events_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logging("warning", "json", stream)

    structlog.get_logger().info("hidden")
    logging.getLogger("aiohttp").info("hidden too")
    structlog.get_logger().warning("seen")

    assert stream.getvalue().count("\n") == 1


def test_messages_of_libraries_take_the_same_form() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)

    logging.getLogger("aiohttp.access").warning("from %s", "elsewhere")

    line = json.loads(stream.getvalue())
    assert (line["event"], line["logger"], line["level"]) == ("from elsewhere", "aiohttp.access", "warning")


def test_the_console_format_is_for_people() -> None:
    stream = io.StringIO()
    configure_logging("info", "console", stream)

    structlog.get_logger().info("task bound", task="ns/a")

    assert "task bound" in stream.getvalue()
    assert "task=ns/a" in stream.getvalue()


@pytest.mark.parametrize(
    ("event", "secret"),
    [
        pytest.param({"token": "hush"}, "hush", id="key"),
        pytest.param({"Authorization": "hush"}, "hush", id="key-in-capitals"),
        pytest.param({"headers": {"authorization": "hush"}}, "hush", id="key-inside-a-value"),
        pytest.param({"users": [{"password": "hush"}]}, "hush", id="key-inside-a-list"),
        pytest.param({"client_key_data": "hush"}, "hush", id="client-key"),
        pytest.param({"why": "http://me:hush@prometheus:9090 failed"}, "hush", id="password-in-address"),
        pytest.param({"error": "sent Bearer abc.def-123 and failed"}, "abc.def-123", id="bearer-in-text"),
        pytest.param({"error": "Authorization: Basic dXNlcjpwYXNz"}, "dXNlcjpwYXNz", id="basic-in-text"),
        pytest.param({"error": "eyJhbGciOi.eyJzdWIi.c2ln refused"}, "eyJzdWIi", id="bare-token-in-text"),
    ],
)
def test_secrets_are_not_logged(event: dict[str, Any], secret: str) -> None:
    line = json.dumps(logged(**event))

    assert secret not in line
    assert "[redacted]" in line


def test_secrets_in_a_traceback_are_not_logged() -> None:
    line = logged(exc_info=ValueError("cannot use Bearer hush-hush"))

    assert "hush-hush" not in json.dumps(line)
    assert "ValueError" in line["exception"]


def test_numbers_under_a_secret_looking_key_are_logged() -> None:
    assert logged(tokens=3)["tokens"] == 3


@pytest.mark.parametrize(
    ("level", "format_", "wanted"),
    [("loud", "json", "debug, info, warning, error"), ("info", "xml", "console, json")],
)
def test_an_unknown_level_or_format_is_refused_with_those_that_exist(level: str, format_: str, wanted: str) -> None:
    with pytest.raises(LogOptionError, match=wanted):
        configure_logging(level, format_)
