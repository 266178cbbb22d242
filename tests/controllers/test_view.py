"""What a watch has shown."""

import pytest

from volcano_py.api.core import Pod
from volcano_py.controllers.view import View
from volcano_py.kube.delivery import EventType
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.testing import a_pod, event

Told = list[tuple[str, bool, bool]]


def a_view() -> tuple[View[Pod], Told]:
    """Return a view of pods of ours, and what it tells: key, whether it had one before and whether it has one now."""
    view: View[Pod] = View(lambda pod: pod.spec.scheduler_name == "volcano")
    told: Told = []
    view.subscribe(lambda key, before, after: told.append((key, before is not None, after is not None)))
    return view, told


def test_changes_are_reported_with_the_old_and_the_new_object() -> None:
    view, told = a_view()

    for kind in (EventType.ADDED, EventType.MODIFIED, EventType.DELETED):
        view.on_events([event(kind, a_pod("p1"))])

    assert told == [("default/p1", False, True), ("default/p1", True, True), ("default/p1", True, False)]
    assert len(view) == 0


def test_an_object_that_is_not_kept_is_as_good_as_absent() -> None:
    view, told = a_view()

    view.on_events([event(EventType.ADDED, a_pod("theirs", scheduler="other"))])

    assert (view.get("default/theirs"), told) == (None, [])


def test_an_object_that_is_no_longer_kept_is_reported_as_deleted() -> None:
    view, told = a_view()
    view.on_events([event(EventType.ADDED, a_pod("p1"))])

    view.on_events([event(EventType.MODIFIED, a_pod("p1", scheduler="other"))])

    assert told[-1] == ("default/p1", True, False)
    assert view.keys() == []


def test_a_subscriber_with_a_bug_misses_one_change_and_all_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnFaults, "survived", True)
    view: View[Pod] = View(lambda pod: pod.metadata.labels["needed"] == "yes")
    told: list[tuple[str, str]] = []

    def broken(key: str, _: Pod | None, __: Pod | None) -> None:
        told.append(("broken", key))
        raise KeyError(key)

    view.subscribe(broken)
    view.subscribe(lambda key, _, __: told.append(("other", key)))

    pods = [a_pod("p1", labels={"needed": "yes"}), a_pod("bad"), a_pod("p2", labels={"needed": "yes"})]
    view.on_events([event(EventType.ADDED, pod) for pod in pods])

    assert told == [(who, key) for key in ("default/p1", "default/p2") for who in ("broken", "other")]
    assert view.keys() == ["default/p1", "default/p2"]
