"""Reads what the API server answers to a write."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
import structlog

from volcano_py.api.meta import ObjectMeta
from volcano_py.api.nesting import decoded
from volcano_py.kube.decoding import decoder_for

log = structlog.get_logger()
T = TypeVar("T")


class Named(msgspec.Struct):
    """An object of which only the metadata matters."""

    metadata: ObjectMeta


def read_answer(answer: bytes, into: type[T], use: Callable[[T], object]) -> None:
    """Use the object of an answer; one that cannot be read comes back from the watch, which reports it."""
    try:
        found = decoded(decoder_for(into).decode, answer)
    except msgspec.DecodeError as error:
        log.debug("an answer cannot be read", error=str(error))
        return
    use(found)
