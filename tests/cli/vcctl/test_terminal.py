"""No table is wider than its terminal: with none, one and 500 rows, with long names, at 80, 120 and 200 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import explaining, flow, job_reading, pod, queue
from volcano_py.cli.vcctl.printing import cut, narrowed
from volcano_py.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES, VCJOBS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WIDTHS = (80, 120, 200)
LONGEST = "team-a-image-recognition-with-many-layers-and-augmentation-0042"
assert len(LONGEST) == 63
NAMES = {
    "none": [],
    "one": ["train"],
    "one long": [LONGEST],
    "many": [f"train-{number}" for number in range(500)],
    "many long": [f"{LONGEST[:-4]}{number:04d}" for number in range(500)],
}
AMOUNTS = {"cpu": "128", "memory": "512Gi", "nvidia.com/gpu": "16", "pods": "1000", "ephemeral-storage": "10Ti"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def metadata(name: str, **more: Any) -> dict[str, Any]:
    created = (NOW - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": name, "namespace": name, "creationTimestamp": created} | more


def vcjob(name: str) -> dict[str, Any]:
    spec = {"minAvailable": 3000, "queue": name, "priorityClassName": name, "tasks": [{"replicas": 10000}]}
    status = {"state": {"phase": "Terminating"}, "pending": 1000, "running": 2000, "succeeded": 3000, "retryCount": 10}
    return {"metadata": metadata(name), "spec": spec, "status": status}


def pod_named(name: str) -> dict[str, Any]:
    labels = {"volcano.sh/job-name": name, "volcano.sh/task-spec": name[:20]}
    waiting = [{"name": "c", "restartCount": 1234, "state": {"waiting": {"reason": "CreateContainerConfigError"}}}]
    return {
        "metadata": metadata(name, labels=labels),
        "spec": {"containers": [{"name": "c"}], "nodeName": name},
        "status": {"phase": "Pending", "podIP": "2001:db8:85a3::8a2e:370:7334", "containerStatuses": waiting},
    }


def queue_named(name: str) -> dict[str, Any]:
    status = {"state": "Closing", "allocated": AMOUNTS}
    return {
        "metadata": {"name": name},
        "spec": {"weight": 65535, "parent": name, "capability": AMOUNTS},
        "status": status,
    }


def flow_named(name: str) -> dict[str, Any]:
    return {"metadata": metadata(name), "status": {"state": {"phase": "Terminating"}}}


TABLES: dict[str, tuple[Callable[..., int], Callable[[str], dict[str, Any]], set[str]]] = {
    "job list": (job_reading.list_jobs, vcjob, {"Name", "Phase", "Replicas", "Running", "Failed"}),
    "job list -A": (job_reading.list_jobs, vcjob, {"Namespace", "Name", "Phase", "Running"}),
    "job list -o wide": (job_reading.list_jobs, vcjob, {"Name", "Phase", "Queue", "Age"}),
    "job list -A -o wide": (job_reading.list_jobs, vcjob, {"Namespace", "Name", "Phase", "Queue"}),
    "vjobs -A": (job_reading.jobs_or_job, vcjob, {"Namespace", "Name", "Phase", "Running"}),
    "pod list": (pod.list_pods, pod_named, {"Name", "Ready", "Status"}),
    "pod list -A": (pod.list_pods, pod_named, {"Namespace", "Name", "Ready", "Status"}),
    "pod list -A -o wide": (pod.list_pods, pod_named, {"Namespace", "Name", "Ready", "Status", "Node"}),
    "queue list": (queue.list_queues, queue_named, {"Name", "State", "Pending", "Running"}),
    "queue list -o wide": (queue.list_queues, queue_named, {"Name", "State", "Running", "Capability", "Allocated"}),
    "vqueues": (queue.queues_or_queue, queue_named, {"Name", "State", "Pending", "Running"}),
    "jobflow list -A": (flow.list_jobflow, flow_named, {"Name", "Namespace", "Phase", "Age"}),
    "jobtemplate list": (flow.list_jobtemplate, flow_named, {"Name", "Namespace"}),
    "jobtemplate list -o wide": (flow.list_jobtemplate, flow_named, {"Name", "Namespace", "Age"}),
}


def printed(run: Callable[..., int], line: str, objects: list[dict[str, Any]], out: io.StringIO) -> list[str]:
    assert run(call_of(line, Canned({PODGROUPS: []}, objects), out, NOW)) == 0
    return out.getvalue().splitlines()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", NAMES)
@pytest.mark.parametrize("line", TABLES)
def test_no_line_is_wider_than_the_terminal(line: str, rows: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run, built, kept = TABLES[line]
    objects = [built(name) for name in NAMES[rows]]

    lines = printed(run, line, objects, Terminal())

    assert max(map(len, lines)) <= width
    if not objects:
        assert lines == ["No resources found"]
        return
    assert len(lines) == 1 + len(objects)
    headers = lines[0].split()
    assert kept <= set(headers)
    all_headers = printed(run, line, objects, io.StringIO())[0].split()
    assert headers == [one for one in all_headers if one in headers]
    assert all(len(row.split()) == len(headers) for row in lines[1:]), "two cells touch"


@pytest.mark.parametrize("rows", ["one", "many"])
@pytest.mark.parametrize("line", [line for line in TABLES if "wide" not in line])
def test_short_names_are_shown_in_full_at_80_columns(line: str, rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run, built, _ = TABLES[line]

    lines = printed(run, line, [built(name) for name in NAMES[rows]], Terminal())

    assert all(name in row.split() for name, row in zip(NAMES[rows], lines[1:], strict=True))


@pytest.mark.parametrize("line", TABLES)
def test_names_that_are_cut_can_still_be_told_apart(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run, built, _ = TABLES[line]

    lines = printed(run, line, [built(name) for name in NAMES["many long"]], Terminal())

    assert len(set(lines[1:])) == 500


@pytest.mark.parametrize("line", TABLES)
def test_a_program_gets_every_column_and_every_name_in_full(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run, built, _ = TABLES[line]

    lines = printed(run, line, [built(name) for name in NAMES["many long"]], io.StringIO())

    assert all(name in row for name, row in zip(NAMES["many long"], lines[1:], strict=True))
    assert "…" not in "".join(lines)


def test_a_table_that_fits_has_volcanos_widths_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for line, (run, built, _) in TABLES.items():
        objects = [built("train")]
        piped = printed(run, line, objects, io.StringIO())
        if max(map(len, piped)) <= 200:
            assert printed(run, line, objects, Terminal()) == piped


@pytest.mark.parametrize("width", [1, 2, 5, 10, 20, 40, 60, 79])
@pytest.mark.parametrize("line", TABLES)
def test_even_a_tiny_terminal_wraps_no_row(line: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run, built, _ = TABLES[line]

    assert max(map(len, printed(run, line, [built(LONGEST)], Terminal()))) <= width


def test_columns_stand_closer_before_cells_are_cut_and_cells_are_cut_before_columns_go() -> None:
    longest, headers, spare = [40, 10, 10], [4, 5, 5], [1]

    assert narrowed(longest, headers, spare, 70) == [(0, 42), (1, 12), (2, 10)]
    assert narrowed(longest, headers, spare, 62) == [(0, 41), (1, 11), (2, 10)]
    assert narrowed(longest, headers, spare, 61) == [(0, 40), (1, 11), (2, 10)]
    assert narrowed(longest, headers, spare, 46) == [(0, 25), (1, 11), (2, 10)]
    assert narrowed(longest, headers, spare, 45) == [(0, 35), (2, 10)]


def test_both_ends_of_a_name_are_kept() -> None:
    assert cut("train-worker-17", 15) == "train-worker-17"
    assert cut("train-worker-17", 9) == "trai…r-17"
    assert cut("train-worker-17", 1) == "…"
    assert cut("train-worker-17", 0) == ""


EVENT = {
    "metadata": {"name": "train.1", "namespace": "a"},
    "type": "Warning",
    "reason": "PodGroupUnschedulable",
    "count": 17,
    "source": {"component": "vc-controller-manager", "host": "a-host-with-a-name"},
    "message": "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; " * 3,
}


@pytest.mark.parametrize("width", WIDTHS)
def test_messages_of_events_go_on_below_themselves(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    job = {"metadata": {"name": "train", "namespace": "a"}}

    job_reading.view_job(call_of("job view train -n a", Canned({VCJOBS: [job], EVENTS: [EVENT]}), out, NOW))

    events = out.getvalue().partition("Events:\n")[2].splitlines()
    assert max(map(len, events)) <= width
    assert {"Reason", "Message"} <= set(events[0].split())
    start = events[0].index("Message")
    assert re.sub(r"\s+", " ", " ".join(line[start:] for line in events[2:])).strip() == str(EVENT["message"]).strip()


# Explanations


def explained(line: str, run: Callable[..., int], out: io.StringIO, queue: str = "research") -> list[str]:
    line = line.replace("research", queue)
    assert run(call_of(f"{line} --scheduler-url none", Canned(waiting_gang(queue)), out, NOW)) == 0
    return out.getvalue().splitlines()


WHYS = [("job why train -n a", explaining.why_job), ("queue why research", explaining.why_queue)]


@pytest.mark.parametrize(("line", "run"), WHYS)
@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_fits_on_one_screen(
    line: str, run: Callable[..., int], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    piped = explained(line, run, io.StringIO())
    titles = [one.rstrip() for one in piped if one and not one.startswith(" ")]
    assert len(piped) > 32

    for height in (24, 30, 40, 60):
        monkeypatch.setenv("LINES", str(height))
        lines = explained(line, run, Terminal())
        assert len(lines) < height  # the prompt needs the last line
        assert max(map(len, lines)) <= width
        for title in titles[1:]:
            name = title.partition(" (")[0]
            assert any(one.startswith(name) for one in lines), "a part is missing"


@pytest.mark.parametrize(("line", "run"), WHYS)
@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_shows_every_column_and_both_ends_of_a_name(
    line: str, run: Callable[..., int], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    whole = explained(line, run, io.StringIO(), LONGEST)
    assert sum(LONGEST in one and "cpu" in one for one in whole) >= 2

    for height in (24, 60):
        monkeypatch.setenv("LINES", str(height))
        lines = explained(line, run, Terminal(), LONGEST)
        tables = [one.split("  ")[-1].strip() for one in lines if re.search(r"  (Verdict|Holds|Reason)$", one)]
        assert {"Verdict", "Holds"} <= {*tables}
        for one in lines:
            if re.search(r"team-a\S*…", one):
                assert re.search(r"team-a\S*…\S*42( |$)", one)
        assert any(re.search(r"…?\S*42 +1 +cpu 1$", one) for one in lines), "what a job holds is missing"


def test_a_pipe_gets_whole_cells() -> None:
    piped = explained(*WHYS[0], io.StringIO(), LONGEST)

    assert "…" not in "".join(piped)


def test_rows_that_a_small_screen_leaves_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")

    small = "\n".join(explained(*WHYS[0], Terminal()))
    monkeypatch.setenv("LINES", "60")
    large = "\n".join(explained(*WHYS[0], Terminal()))

    assert "Who holds the room (3 more)" in large
    assert re.search(r"^Who holds the room \((5|7) more\) +Queue +Pods +Holds$", small, re.M)
    assert "Events (" in small


def waiting_gang(queue: str) -> dict[Any, list[Any]]:
    """A gang in a queue below another one, eight holders, and events of six kinds."""
    owner = [{"kind": "Job", "name": "train", "uid": "u"}]
    spec = {"queue": queue, "minMember": 4, "minResources": {"cpu": "8"}}
    state = {"phase": "Pending", "reason": "Created", "message": "the PodGroup of the job is created; its pods follow"}
    pods = [holder(number) for number in range(8)]
    groups = [{"metadata": metadata("train-u", namespace="a", ownerReferences=owner), "spec": spec, "status": {}}]
    groups += [{"metadata": {"name": f"g{number}", "namespace": "a"}, "spec": {"queue": queue}} for number in range(8)]
    tasks = [{"name": "w", "replicas": 4, "template": {"spec": {"containers": [{"resources": AMOUNTS_OF_2}]}}}]
    job_spec = {"queue": queue, "minAvailable": 4, "tasks": tasks}
    job = {"metadata": metadata("train", namespace="a", uid="u"), "spec": job_spec, "status": {"state": state}}
    return {
        VCJOBS: [job],
        PODGROUPS: groups,
        PODS: pods,
        QUEUES: [
            {"metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": "Open"}}
            for name, parent in ((queue, "all"), ("all", "root"), ("root", ""))
        ],
        NODES: [{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}],
        EVENTS: [
            {**EVENT, "reason": f"Reason{number}", "involvedObject": {"kind": "PodGroup", "name": "train-u"}}
            for number in range(6)
        ],
    }


AMOUNTS_OF_2 = {"requests": {"cpu": "2"}}


def holder(number: int) -> dict[str, Any]:
    annotations = {"scheduling.k8s.io/group-name": f"g{number}"}
    return {
        "metadata": metadata(f"p{number}", namespace="a", annotations=annotations),
        "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running"},
    }
