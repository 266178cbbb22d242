"""Several streams of the API server at once: each has a thread and a connection, and one reader takes from all."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from volcano_py.client.api import Api, Obj
from volcano_py.client.problem import ApiProblem
from volcano_py.kube.resource import Resource

T = TypeVar("T")
LISTED: Final = "LISTED"
"""The kind of a change that is a whole list: the server did not remember what happened since."""
PAUSE_S: Final = 0.2
_BOUND: Final = 1000
_WAIT_S: Final = 60.0


class Source(NamedTuple):
    """What to watch, and from which version on."""

    kind: Resource
    version: str
    query: Mapping[str, str]


class Change(NamedTuple):
    """One change; ``objects`` are several only if the whole list was read again."""

    kind: Resource
    what: str
    objects: Sequence[Obj]


def follow(api: Api, sources: Sequence[Source], pause_s: float = PAUSE_S) -> Iterator[list[Change]]:
    """Yield what changes, for ever; changes that come within a pause come together. Raise what ends a watch."""
    return together([partial(_watched, api.another(), one) for one in sources], pause_s)


def together(streams: Sequence[Callable[[], Iterator[T]]], pause_s: float = 0.0) -> Iterator[list[T]]:
    """Yield what streams bring until all have ended; raise the problem of the first that fails."""
    arrived: queue.Queue[_Item] = queue.Queue(_BOUND)
    left = threading.Event()
    for stream in streams:
        # The end of the process does not wait for a stream: it may be silent for minutes.
        threading.Thread(target=_read, args=(stream, arrived, left), name="stream", daemon=True).start()
    still_open = len(streams)
    try:
        while still_open:
            try:
                batch = [arrived.get(timeout=_WAIT_S)]
            except queue.Empty:
                continue  # nothing happens for a while; a stream whose server is gone ends by itself
            if pause_s:
                time.sleep(pause_s)
            batch += [arrived.get(timeout=_WAIT_S) for _ in range(arrived.qsize())]
            if found := [one for item in batch for one in item.brought]:
                yield found
            for item in batch:
                if item.problem is not None:
                    raise item.problem
                still_open -= item.ended
    finally:
        left.set()


class _Item(NamedTuple):
    """What a thread says: something has come, or the stream has ended, well or not."""

    brought: Sequence[Any] = ()
    ended: bool = False
    problem: Exception | None = None


def _read(stream: Callable[[], Iterator[Any]], arrived: "queue.Queue[_Item]", left: threading.Event) -> None:
    def say(item: _Item) -> None:
        while not left.is_set():
            try:
                arrived.put(item, timeout=1.0)
            except queue.Full:
                continue
            return

    try:
        for one in stream():
            say(_Item([one]))
            if left.is_set():
                return
    except Exception as error:  # noqa: BLE001 - the reader raises it
        say(_Item(problem=error))
    else:
        say(_Item(ended=True))


def _watched(api: Api, source: Source) -> Iterator[Change]:
    kind, version, query = source
    while True:
        api.version = version
        try:
            for what, obj in api.watch(kind, **query):
                yield Change(kind, what, [obj])
        except ApiProblem as problem:
            if problem.status != 410:
                raise
            objects = api.list(kind, **query)
            version = api.version
            yield Change(kind, LISTED, objects)
