"""What a watch has shown."""

from volcano_py.api.core import Pod
from volcano_py.controllers.view import View
from volcano_py.kube.delivery import EventType
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
