"""The Commands of one job while the API server refuses to delete one."""

import random

from volcano_py.api.batch import Command
from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.job.commands import JobCommands
from volcano_py.controllers.writes import Delete
from volcano_py.kube.resource import COMMANDS

RNG = random.Random(1)


def a_command(name: str, version: str = "1") -> Command:
    return Command(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resource_version=version))


def deletion(name: str) -> Delete:
    return Delete(COMMANDS, "default", name, f"uid-{name}")


def with_one_held() -> JobCommands:
    commands = JobCommands()
    commands.put("default/first", a_command("first"))
    commands.was_refused(deletion("first"), 0.0, RNG)
    commands.put("default/second", a_command("second", "2"))
    return commands


def test_others_wait_until_the_one_that_was_answered_is_gone() -> None:
    commands = with_one_held()
    assert (commands.in_turn(), sorted(commands)) == ([], ["default/first", "default/second"])

    commands.changes("default/first", gone=True)

    assert [each.metadata.name for each in commands.in_turn()] == ["second"]
    assert commands.next_due_s(0.0) is None


def test_a_new_label_does_not_have_it_answered_again() -> None:
    commands = with_one_held()

    commands.changes("default/first", gone=False)

    assert not commands.put("default/first", a_command("first", "3"))
    assert commands.in_turn() == []
    assert commands.due(60.0) == deletion("first")


def test_the_pause_grows_to_a_minute_and_users_are_told_once() -> None:
    commands, now, told, pauses = JobCommands(), 0.0, 0, []
    for _ in range(5000):  # three days
        told += commands.was_refused(deletion("first"), now, RNG)
        pauses.append(commands.next_due_s(now) or 0.0)
        assert commands.due(now) is None
        now += pauses[-1]
        assert commands.due(now) == deletion("first")

    assert pauses[0] < 2.0 < max(pauses) <= 90.0
    assert told == 1
