"""An exception over one object sets this object aside; everything else goes on."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.kube.fake_api import Meta, Widget
from volcano_py.kube.decoding import Identity, Undecodable
from volcano_py.kube.delivery import Delivery, Event, EventType, Quarantined
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.kube.setting_aside import SettingAside
from volcano_py.runtime.clock import FakeClock

POISON = 13


class Poisoned:
    """A handler that raises over a size of 13, after it has taken in half of the object."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.aside: list[Quarantined] = []
        self.broken_to_the_core = False

    def on_events(self, events: list[Event[Widget]]) -> None:
        for event in events:
            if event.type is EventType.DELETED:
                if self.broken_to_the_core:
                    raise LookupError(event.key)
                self.sizes.pop(event.name, None)
                continue
            assert event.object is not None
            self.sizes[event.name] = -1
            if event.object.size == POISON:
                raise {}[event.object.size]  # type: ignore[misc]
            self.sizes[event.name] = event.object.size

    def on_quarantine(self, entry: Quarantined) -> None:
        if self.broken_to_the_core:
            raise LookupError(entry.name)
        self.aside.append(entry)
        self.sizes.pop(entry.name, None)

    def on_release(self, entry: Quarantined) -> None: ...


@pytest.fixture(autouse=True)
def faults_are_survived(faults_are_seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnFaults, "survived", True)


def a_net(told: Any = lambda _: None) -> tuple[Poisoned, SettingAside[Widget], Delivery[Widget]]:
    handler = Poisoned()
    net = SettingAside("widgets", handler, FakeClock(), told)
    return handler, net, Delivery("widgets", net)


def put(delivery: Delivery[Widget], **sizes: int) -> None:
    """Deliver widgets of these sizes in one batch; a size makes a version of its own."""
    for name, size in sizes.items():
        delivery.put(Widget(Meta(name, "ns", f"uid-{name}", str(size)), size), 0.0)
    delivery.flush()


def test_an_object_over_which_the_handler_raises_is_set_aside_and_all_others_arrive() -> None:
    handler, net, delivery = a_net()

    put(delivery, a=1, bad=POISON, b=2)

    assert handler.sizes == {"a": 1, "b": 2}
    assert list(net.aside) == ["ns/bad"]
    (entry,) = handler.aside
    assert (entry.resource, entry.namespace, entry.name, entry.uid) == ("widgets", "ns", "bad", "uid-bad")
    assert b'"size":13' in entry.raw
    assert "widgets ns/bad cannot be read: KeyError: 13 (test_setting_aside.py:" in entry.message
    assert "this is a fault of ours: please report it" in entry.message
    assert net.aside["ns/bad"].raw == b""


def test_an_object_that_is_changed_is_taken_up_and_one_that_is_deleted_is_forgotten() -> None:
    handler, net, delivery = a_net()
    put(delivery, a=POISON, b=POISON)

    put(delivery, a=2)
    assert handler.sizes == {"a": 2}
    assert list(net.aside) == ["ns/b"]

    delivery.delete(Widget(Meta("b", "ns", "uid-b", "14"), POISON), 0.0)
    delivery.flush()
    assert not net.aside


def test_an_object_that_is_listed_again_unchanged_is_not_tried_again() -> None:
    handler, net, delivery = a_net()
    put(delivery, a=POISON)

    delivery.begin_list()
    put(delivery, a=POISON)
    delivery.end_list(0.0)

    assert len(handler.aside) == 1
    assert list(net.aside) == ["ns/a"]


def test_it_is_logged_and_told_once_for_each_object_and_problem_not_for_each_version() -> None:
    told: list[Quarantined] = []
    _, _, delivery = a_net(told.append)

    with capture_logs() as logs:
        for version in range(5):
            delivery.put(Widget(Meta("a", "ns", "u", str(version)), POISON), 0.0)
            delivery.flush()
        put(delivery, b=POISON)

    lines = [line["problem"] for line in logs if line["log_level"] == "warning"]
    assert [line.split(" cannot")[0] for line in lines] == ["widgets ns/a", "widgets ns/b"]
    assert [entry.name for entry in told] == ["a", "b"]
    assert sum("exc_info" in line for line in logs) == 1  # one traceback for one place in the code


def test_an_object_that_does_not_fit_its_type_is_logged_and_told_once_for_each_problem() -> None:
    told: list[Quarantined] = []
    _, _, delivery = a_net(told.append)

    with capture_logs() as logs:
        for version, value in enumerate(("1", "1", "2")):
            bad = Undecodable(
                Identity("a", "ns", "u", str(version)), "size", value, "Expected `int`", b"{}", "MODIFIED"
            )
            delivery.refuse(bad, 0.0)

    assert [entry.value for entry in told] == ["1", "2"]
    assert len([line for line in logs if line["log_level"] == "warning"]) == 2


def test_an_object_set_aside_that_then_does_not_fit_its_type_is_left_out_once() -> None:
    _, net, delivery = a_net()
    put(delivery, a=POISON)

    delivery.refuse(Undecodable(Identity("a", "ns", "uid-a", "14"), "size", "x", "bad", b"{}", "MODIFIED"), 0.0)
    assert not net.aside
    assert list(delivery.quarantined) == ["ns/a"]

    put(delivery, a=2)
    assert not delivery.quarantined


def test_a_handler_that_can_neither_take_nor_leave_an_object_stops_nothing() -> None:
    handler, net, delivery = a_net()
    handler.broken_to_the_core = True

    put(delivery, a=1, bad=POISON, b=2)
    delivery.delete(Widget(Meta("a", "ns", "uid-a", "3"), 1), 0.0)
    put(delivery, c=3)

    assert handler.sizes["b"] == 2
    assert handler.sizes["c"] == 3
    assert list(net.aside) == ["ns/bad"]


def test_the_half_of_an_object_that_is_in_the_state_does_not_hide_the_fault() -> None:
    class Half(Poisoned):
        def on_events(self, events: list[Event[Widget]]) -> None:
            for event in events:
                assert event.object is not None
                if self.sizes.get(event.name) == event.object.size:
                    continue  # it is known already
                self.sizes[event.name] = event.object.size
                if event.object.size == POISON:
                    raise LookupError(event.name)

    for sizes in ({"bad": POISON}, {"a": 1, "bad": POISON, "b": 2}):
        handler = Half()
        delivery = Delivery("widgets", SettingAside("widgets", handler, FakeClock()))
        put(delivery, **sizes)

        assert [entry.name for entry in handler.aside] == ["bad"]
        assert handler.sizes == {name: size for name, size in sizes.items() if size != POISON}


def test_a_fault_after_all_events_is_looked_for_in_each_of_them() -> None:
    class Afterwards(Poisoned):
        def on_events(self, events: list[Event[Widget]]) -> None:
            sizes = [event.object.size for event in events if event.object is not None]
            if POISON in sizes:
                raise LookupError(POISON)
            super().on_events(events)

    handler = Afterwards()
    delivery = Delivery("widgets", SettingAside("widgets", handler, FakeClock()))
    put(delivery, a=1, bad=POISON, b=2)

    assert [entry.name for entry in handler.aside] == ["bad"]
    assert handler.sizes == {"a": 1, "b": 2}


def test_a_fault_that_no_object_repeats_is_logged() -> None:
    class Once(Poisoned):
        def on_events(self, events: list[Event[Widget]]) -> None:
            super().on_events(events)
            if len(events) > 1:
                raise RuntimeError("only of many")

    handler = Once()
    delivery = Delivery("widgets", SettingAside("widgets", handler, FakeClock()))
    with capture_logs() as logs:
        put(delivery, a=1, b=2)

    assert handler.sizes == {"a": 1, "b": 2}
    assert not handler.aside
    assert [line["object"] for line in logs] == ["widgets, 2 changes"]


def test_tests_see_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnFaults, "survived", False)
    _, _, delivery = a_net()

    with pytest.raises(KeyError):
        put(delivery, a=1, bad=POISON)
