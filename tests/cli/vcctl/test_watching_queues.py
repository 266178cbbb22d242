"""A watch of queues prints a row when its numbers change, and not when nothing in it changes."""

from __future__ import annotations

import io
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from tests.cli.vcctl.running import Cluster, begun
from volcano_py.cli.vcctl import queue
from volcano_py.client.api import Obj
from volcano_py.client.following import LISTED, Change, Source, follow, together
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import PODGROUPS, QUEUES, VCJOBS, Resource

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_rows_follow_the_groups_of_a_queue_and_the_queue_itself(cluster: Cluster) -> None:
    space = cluster.namespace("queued")
    for name in ("root", "watched", "other"):
        cluster.api.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, "parent": "root"}})
    with begun("queue", "list", "--watch") as process:
        assert process.stdout is not None
        lines = iter(process.stdout)

        def row() -> list[str]:
            return next(lines).split()

        assert [row()[0] for _ in range(4)] == ["Name", "other", "root", "watched"]
        cluster.group("g", space, spec={"queue": "watched"}, status={"phase": "Pending"})
        assert row() == ["watched", "1", "root", "0", "1", "0", "0", "0"]
        cluster.api.patch(PODGROUPS, "g", {"metadata": {"labels": {"a": "b"}}}, space)  # nothing that a row shows
        cluster.api.patch(PODGROUPS, "g", {"status": {"phase": "Running"}}, space)
        assert row() == ["watched", "1", "root", "0", "0", "1", "0", "0"]
        cluster.api.patch(PODGROUPS, "g", {"spec": {"queue": "other"}}, space)
        assert sorted([row(), row()]) == [
            ["other", "1", "root", "0", "0", "1", "0", "0"],
            ["watched", "1", "root", "0", "0", "0", "0", "0"],
        ]
        cluster.api.delete(PODGROUPS, "g", space)
        assert row() == ["other", "1", "root", "0", "0", "0", "0", "0"]
        cluster.api.patch(QUEUES, "watched", {"spec": {"weight": 7}})
        assert row() == ["watched", "7", "root", "0", "0", "0", "0", "0"]
        cluster.api.delete(QUEUES, "other")
        assert row()[0] == "other"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert list(lines) == []
        assert process.wait(20) == 130


class Forgetful(Canned):
    """The watch of PodGroups is too old once; then the server is gone."""

    def __init__(self) -> None:
        groups = [{"metadata": {"name": "g", "namespace": "a"}, "spec": {"queue": "q"}, "status": {"phase": "Pending"}}]
        super().__init__({QUEUES: [{"metadata": {"name": "q"}, "spec": {"weight": 1}}], PODGROUPS: groups})
        self.groups = groups
        self.told = threading.Event()
        self.forgot = False

    def watch(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[tuple[str, Obj]]:
        if kind is QUEUES:
            assert self.told.wait(20)
            time.sleep(0.5)
            raise Problem("the server is gone")
        if not self.forgot:
            self.forgot = True
            self.groups[0]["status"] = {"phase": "Running"}
            raise ApiProblem(410, "Expired", "too old")
        self.told.set()
        yield from ()
        threading.Event().wait(5)


def test_a_version_that_is_too_old_and_a_server_that_is_gone() -> None:
    out = io.StringIO()

    with pytest.raises(Problem, match="the server is gone"):
        queue.list_queues(call_of("queue list --watch", Forgetful(), out, NOW))

    _, before, after = (line.split() for line in out.getvalue().splitlines())
    assert before == ["q", "1", "0", "1", "0", "0", "0"]
    assert after == ["q", "1", "0", "0", "1", "0", "0"]


class Scripted(Canned):
    """Changes of jobs, as the test says."""

    def __init__(self, *changes: tuple[str, Obj] | Problem) -> None:
        super().__init__({VCJOBS: [{"metadata": {"name": "listed"}}]})
        self._changes = list(changes)

    def watch(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[tuple[str, Obj]]:
        while self._changes:
            change = self._changes.pop(0)
            if isinstance(change, Problem):
                raise change
            yield change


def test_changes_of_one_moment_come_together_and_a_problem_comes_last() -> None:
    job: dict[str, Any] = {"metadata": {"name": "a"}}
    api = Scripted(("ADDED", job), ApiProblem(410, "Expired", "too old"), ("DELETED", job), Problem("gone"))

    batches = follow(api, [Source(VCJOBS, "1", {})], pause_s=0.3)

    assert next(batches) == [
        Change(VCJOBS, "ADDED", [job]),
        Change(VCJOBS, LISTED, [{"metadata": {"name": "listed"}}]),
        Change(VCJOBS, "DELETED", [job]),
    ]
    with pytest.raises(Problem, match="gone"):
        next(batches)


def test_streams_end_when_the_last_one_has_ended_and_more_items_than_the_bound_pass() -> None:
    streams = [lambda: iter(range(3000)), lambda: iter(()), lambda: iter(range(3000, 3010))]

    assert sorted(one for batch in together(streams) for one in batch) == list(range(3010))


def test_a_mistake_in_a_stream_is_raised_where_it_is_read() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise KeyError("metadata")

    with pytest.raises(KeyError, match="metadata"):
        list(together([broken]))
