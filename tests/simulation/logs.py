"""What programs log in a simulation: nothing, or remarks in its history."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from tests.simulation.history import History
from tests.simulation.loop import PROCESS

_KEPT = ("warning", "error", "critical", "exception")


def quiet() -> None:
    """Let nothing of this Python process log any more; saves a third of the time of a simulation."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    # A process that is killed leaves coroutines that it has made and not begun.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


@contextmanager
def silence() -> Iterator[None]:
    """Log nothing in this block."""
    with _configured(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)):
        yield


@contextmanager
def remembered(history: History) -> Iterator[None]:
    """Make remarks of the warnings and errors that programs log in this block; they do not change the digest."""

    def remark(_: Any, level: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        if level in _KEPT:
            history.remark("log", f"{PROCESS.get().name} {level}: {_line(event)}")
        raise structlog.DropEvent

    with _configured(
        processors=[remark], wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING), context_class=dict
    ):
        yield


def _line(event: MutableMapping[str, Any]) -> str:
    parts = [str(event.pop("event", ""))]
    parts += [f"{key}={value}" for key, value in event.items() if key != "exc_info"]
    return " ".join(" ".join(parts).split())


@contextmanager
def _configured(**how: Any) -> Iterator[None]:
    """Change the configuration of all loggers in this block."""
    before: Mapping[str, Any] = structlog.get_config()
    disabled = logging.root.manager.disable
    restore: Callable[..., None] = structlog.configure
    structlog.configure(**{**before, "cache_logger_on_first_use": False, **how})
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        restore(**before)
        logging.disable(disabled)
