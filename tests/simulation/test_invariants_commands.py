"""The invariant of commands fails where it should, and only there."""

from collections.abc import Iterator

import pytest

from tests.simulation import objects
from tests.simulation.fabricated import Fabricated
from volcano_py.apiserver.origin import ORIGIN

NAME = "commands take effect"


@pytest.fixture
def world() -> Iterator[Fabricated]:
    """A world with two queues that are open, one below the other."""
    token = ORIGIN.set(ORIGIN.get())
    fabricated = Fabricated()
    fabricated.lead(fabricated.controllers, "vc-controller-manager")
    fabricated.servers.create(objects.queue("above"))
    fabricated.servers.create(objects.queue("below", parent="above"))
    for name in ("above", "below"):
        state(fabricated, name, "Open")
    yield fabricated
    fabricated.loop.abandon()
    ORIGIN.reset(token)


def state(world: Fabricated, name: str, wanted: str) -> None:
    """Let a queue be in a state."""
    world.put(objects.QUEUES, world.current(objects.QUEUES, name), status={"state": wanted})


def asked(world: Fabricated, name: str, action: str) -> None:
    """Create a command for a queue."""
    world.servers.create(objects.order("c", action, world.current(objects.QUEUES, name)))


def deleted(world: Fabricated) -> None:
    """Let the controllers delete the command, a second later."""
    world.at(world.loop.now + 1.0)
    with world.asks(world.controllers, "delete", objects.COMMANDS):
        world.remove(objects.COMMANDS, "default/c")


def test_a_command_that_closes_a_queue_before_it_is_deleted_violates_nothing(world: Fabricated) -> None:
    asked(world, "below", "CloseQueue")
    state(world, "below", "Closed")
    deleted(world)

    assert not world.found()
    assert not world.rest(NAME)


def test_a_command_that_is_deleted_without_an_effect_is_lost(world: Fabricated) -> None:
    asked(world, "below", "CloseQueue")
    deleted(world)

    assert world.found() == {NAME}


def test_a_state_before_the_command_is_no_effect(world: Fabricated) -> None:
    state(world, "below", "Closed")
    asked(world, "below", "OpenQueue")
    deleted(world)

    assert world.found() == {NAME}


def test_a_queue_below_a_closed_one_may_stay_closed(world: Fabricated) -> None:
    state(world, "above", "Closed")
    state(world, "below", "Closed")
    asked(world, "below", "OpenQueue")
    deleted(world)

    assert not world.found()


@pytest.mark.parametrize(
    ("above", "below", "fits"),
    [
        ("Open", "Open", True),
        ("Open", "Closed", False),
        ("Open", "Unknown", False),
        ("Open", "", False),
        ("Closed", "Open", False),
    ],
)
def test_at_rest_a_queue_that_nobody_closed_is_open(world: Fabricated, above: str, below: str, fits: bool) -> None:
    if above == "Closed":
        asked(world, "above", "CloseQueue")
        state(world, "above", above)
        deleted(world)
    state(world, "below", below)

    assert world.rest(NAME) == (set() if fits else {NAME})


def test_at_rest_a_queue_is_as_the_last_command_asked(world: Fabricated) -> None:
    asked(world, "below", "CloseQueue")
    state(world, "below", "Closed")
    deleted(world)
    state(world, "below", "Open")

    assert world.rest(NAME) == {NAME}


def test_no_command_stays(world: Fabricated) -> None:
    asked(world, "below", "OpenQueue")

    assert world.rest(NAME) == {NAME}


@pytest.mark.parametrize(
    ("action", "phases", "fits"),
    [
        ("AbortJob", ("Pending", "Running"), False),
        ("AbortJob", ("Running", "Aborting"), True),
        ("AbortJob", ("Restarting",), True),
        ("RestartJob", ("Running",), False),
        ("ResumeJob", ("Aborted",), False),
        ("ResumeJob", ("Aborted", "Restarting"), True),
        ("ResumeJob", ("Running",), True),
    ],
)
def test_a_job_leaves_its_phase_before_the_command_is_deleted(
    world: Fabricated, action: str, phases: tuple[str, ...], fits: bool
) -> None:
    made = world.servers.create(objects.vcjob("j", [("main", 1, 1, {"spec": objects.pod_spec("1")})], 1, "below"))

    def phase(wanted: str) -> None:
        world.put(objects.JOBS, world.current(objects.JOBS, "j"), status={"state": {"phase": wanted}})

    phase(phases[0])
    world.found()  # jobs do not begin like this
    world.servers.create(objects.command("c", action, made))
    for each in phases[1:]:
        phase(each)
    world.found()
    deleted(world)

    assert world.found() == (set() if fits else {NAME})


def test_who_else_deletes_a_command_withdraws_it(world: Fabricated) -> None:
    asked(world, "below", "CloseQueue")
    world.remove(objects.COMMANDS, "default/c")

    assert not world.found()
