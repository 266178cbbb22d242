"""The stream a handler sees is correct whatever the server says and however often it breaks."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.fake_api import Meta, Widget
from volcano_py.kube.decoding import Identity, Undecodable
from volcano_py.kube.delivery import Delivery, Event, EventType, Quarantined

NAMES = ("a", "b", "c", "d")


class Mirror:
    """A handler that checks each event against what it knows."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, int]] = {}
        self.quarantine: dict[str, tuple[str, str]] = {}  # key -> uid and version

    def on_events(self, events: list[Event[Widget]]) -> None:
        for event in events:
            if event.type is EventType.DELETED:
                uid, _ = self.objects.pop(event.key)
                assert uid == event.uid
                continue
            assert event.object is not None
            if event.type is EventType.ADDED:
                assert event.key not in self.objects
            else:
                assert self.objects[event.key][0] == event.uid
                assert self.objects[event.key][1] < event.object.size
            self.objects[event.key] = (event.uid, event.object.size)

    def on_quarantine(self, entry: Quarantined) -> None:
        key = f"{entry.namespace}/{entry.name}"
        assert entry.delivered == (key in self.objects)
        before = self.quarantine.get(key, (entry.uid, None))
        assert before[0] == entry.uid  # another one would have been released
        assert before[1] != entry.resource_version
        self.quarantine[key] = (entry.uid, entry.resource_version)

    def on_release(self, entry: Quarantined) -> None:
        assert self.quarantine.pop(f"{entry.namespace}/{entry.name}")[0] == entry.uid


@dataclass
class Server:
    """Objects with versions; ``history`` is what a watch would say."""

    version: int = 0
    objects: dict[str, tuple[str, int, bool]] = field(default_factory=dict)  # name -> uid, version, readable
    history: list[tuple[str, str, tuple[str, int, bool]]] = field(default_factory=list)

    def write(self, name: str, *, readable: bool) -> None:
        self.version += 1
        uid = self.objects[name][0] if name in self.objects else f"uid-{self.version}"
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = (uid, self.version, readable)
        self.history.append((kind, name, self.objects[name]))

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.version += 1
            uid, _, readable = self.objects.pop(name)
            self.history.append(("DELETED", name, (uid, self.version, readable)))


def say(delivery: Delivery[Widget], kind: str, name: str, state: tuple[str, int, bool]) -> None:
    """Tell the delivery of one state of one object."""
    uid, version, readable = state
    if not readable:
        identity = Identity(name, "ns", uid, str(version))
        delivery.refuse(Undecodable(identity, "size", '"big"', "Expected `int`", b"{}", kind), 0.0)
        return
    widget = Widget(Meta(name, "ns", uid, str(version)), version)
    if kind == "DELETED":
        delivery.delete(widget, 0.0)
    else:
        delivery.put(widget, 0.0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES)),
        st.tuples(st.just("spoil"), st.sampled_from(NAMES)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.sampled_from(["watch", "repeat", "relist", "broken list", "flush"]), st.just("")),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(STEPS)
def test_the_handler_ends_with_the_objects_of_the_server(steps: list[tuple[str, str]]) -> None:
    server, mirror = Server(), Mirror()
    delivery = Delivery[Widget]("widgets", mirror)
    told = 0  # how far into the history the watch has come

    def relist(names: list[str]) -> None:
        delivery.begin_list()
        for name in names:
            say(delivery, "", name, server.objects[name])

    for step, name in [*steps, ("relist", ""), ("write", "a"), ("watch", "")]:
        match step:
            case "write" | "spoil":
                server.write(name, readable=step == "write")
            case "delete":
                server.delete(name)
            case "watch":
                for event in server.history[told:]:
                    say(delivery, *event)
                told = len(server.history)
            case "repeat" if told:
                say(delivery, *server.history[told - 1])
            case "relist":
                relist(list(server.objects))
                delivery.end_list(0.0)
                told = len(server.history)
            case "broken list":
                relist(list(server.objects)[:1])
                relist(list(server.objects))
                delivery.end_list(0.0)
                told = len(server.history)
            case _:
                delivery.flush()
    delivery.flush()

    readable = {f"ns/{name}": (uid, version) for name, (uid, version, ok) in server.objects.items() if ok}
    unreadable = {f"ns/{name}": (uid, str(version)) for name, (uid, version, ok) in server.objects.items() if not ok}
    assert {key: state for key, state in mirror.objects.items() if key not in unreadable} == readable
    assert mirror.quarantine == unreadable
    assert set(delivery.known) == set(mirror.objects)
    assert set(delivery.quarantined) == set(unreadable)


def test_an_event_names_its_object_with_and_without_namespace() -> None:
    spaced = Event[Widget](EventType.ADDED, "ns/a", "u", None, 0.0, False)
    plain = Event[Widget](EventType.ADDED, "n1", "u", None, 0.0, False)

    assert (spaced.namespace, spaced.name) == ("ns", "a")
    assert (plain.namespace, plain.name) == ("", "n1")


def test_a_bad_object_is_released_when_a_list_shows_another_of_its_name_that_is_bad_too() -> None:
    mirror = Mirror()
    delivery = Delivery[Widget]("widgets", mirror)

    for uid, version in (("uid-1", 1), ("uid-2", 5)):
        delivery.begin_list()
        say(delivery, "", "a", (uid, version, False))
        delivery.end_list(0.0)

    assert mirror.quarantine == {"ns/a": ("uid-2", "5")}


def test_an_object_whose_bad_version_was_undone_by_a_restored_backup_is_delivered_again() -> None:
    mirror = Mirror()
    delivery = Delivery[Widget]("widgets", mirror)
    good, bad = ("uid-1", 1, True), ("uid-1", 2, False)
    say(delivery, "ADDED", "a", good)
    say(delivery, "MODIFIED", "a", bad)
    mirror.objects["ns/a"] = ("uid-1", 0)  # a handler may have dropped it

    delivery.begin_list()
    say(delivery, "", "a", good)
    delivery.end_list(0.0)

    assert not mirror.quarantine
    assert mirror.objects == {"ns/a": ("uid-1", 1)}


def test_an_object_without_a_name_is_reported_and_not_kept() -> None:
    mirror = Mirror()
    delivery = Delivery[Widget]("widgets", mirror)

    delivery.refuse(Undecodable(Identity(), "", "", "Expected `object`", b"[]", "ADDED"), 0.0)

    assert list(mirror.quarantine) == ["/"]
    assert not delivery.quarantined


def test_the_json_of_a_quarantined_object_is_given_once_and_not_kept() -> None:
    given_raw: list[bytes] = []

    class Reader(Mirror):
        def on_quarantine(self, entry: Quarantined) -> None:
            given_raw.append(entry.raw)

    delivery = Delivery[Widget]("widgets", Reader())
    delivery.refuse(Undecodable(Identity("a", "ns", "u", "1"), "", "", "bad", b"{1}", "ADDED"), 0.0)

    assert given_raw == [b"{1}"]
    assert delivery.quarantined["ns/a"].raw == b""
