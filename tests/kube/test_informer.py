"""The barrier over several resources."""

import pytest

from tests.effects.waiting import until
from tests.kube.fake_api import WIDGETS, FakeApi, Widget, a_widget
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, Quarantined
from volcano_py.kube.informer import Informers, SyncTimeout
from volcano_py.kube.resource import Resource
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import Supervisor, TaskFailed

GADGETS = Resource("test.example", "v1", "gadgets", "Gadget")


class Names:
    """A handler that keeps the names it was told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_events(self, events: list[Event[Widget]]) -> None:
        self.names += [event.name for event in events]

    def on_quarantine(self, entry: Quarantined) -> None: ...

    def on_release(self, entry: Quarantined) -> None: ...


async def test_synced_means_that_every_handler_has_its_whole_first_list(api: FakeApi, client: ApiClient) -> None:
    api.objects = [a_widget("a", 1), a_widget("b", 1)]
    widgets, gadgets = Names(), Names()
    informers = Informers(client)
    informers.add(WIDGETS, Widget, widgets)
    informers.add(GADGETS, Widget, gadgets)
    assert informers.not_ready() == ["widgets.test.example is not listed yet", "gadgets.test.example is not listed yet"]
    async with Supervisor() as supervisor:
        informers.start(supervisor)
        await informers.synced(5)

        assert (widgets.names, gadgets.names, informers.not_ready()) == (["a", "b"], ["a", "b"], [])
        assert supervisor.running == ["informer widgets.test.example", "informer gadgets.test.example"]


async def test_a_barrier_that_is_not_reached_names_who_is_missing_and_why(api: FakeApi, client: ApiClient) -> None:
    api.fail_next(403, "Forbidden", "widgets are not for you")
    clock = FakeClock()
    informers = Informers(client, clock=clock)
    informers.add(WIDGETS, Widget, Names())
    async with Supervisor() as supervisor:
        informers.start(supervisor)
        await until(lambda: clock.sleepers)
        with pytest.raises(SyncTimeout, match=r"widgets\.test\.example; list .*: widgets are not for you"):
            await informers.synced(0.01)


async def test_unreadable_objects_of_all_resources_are_listed_with_their_reason(
    api: FakeApi, client: ApiClient
) -> None:
    api.objects = [a_widget("bad", 1, size="big")]
    informers = Informers(client)
    informers.add(WIDGETS, Widget, Names())
    informers.add(GADGETS, Widget, Names())
    async with Supervisor() as supervisor:
        informers.start(supervisor)
        await informers.synced(5)

        assert [entry.message.split(":")[0] for entry in informers.quarantined()] == [
            "gadgets.test.example ns/bad cannot be read",
            "widgets.test.example ns/bad cannot be read",
        ]
        assert {name: status.quarantined for name, status in informers.status().items()} == {
            "widgets.test.example": 1,
            "gadgets.test.example": 1,
        }


async def test_one_resource_may_be_watched_twice_under_names_of_their_own(client: ApiClient) -> None:
    informers = Informers(client)
    informers.add(WIDGETS, Widget, Names())
    with pytest.raises(ValueError, match="give this one a name of its own"):
        informers.add(WIDGETS, Widget, Names())

    informers.add(WIDGETS, Widget, Names(), name="small widgets", label_selector="size=small")

    assert list(informers.status()) == ["widgets.test.example", "small widgets"]


async def test_a_bug_in_a_handler_stops_the_process_by_name(api: FakeApi, client: ApiClient) -> None:
    class Broken(Names):
        def on_events(self, events: list[Event[Widget]]) -> None:
            raise RuntimeError("a bug")

    async def run() -> None:
        async with Supervisor() as supervisor:
            informers = Informers(client)
            informers.add(WIDGETS, Widget, Broken())
            informers.start(supervisor)
            await informers.synced(5)

    api.objects = [a_widget("a", 1)]
    with pytest.raises(TaskFailed, match=r"informer widgets\.test\.example.*a bug"):
        await run()
