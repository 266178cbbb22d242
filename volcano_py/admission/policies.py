"""Lifecycle policies of jobs and tasks: what they may react to, and what they may do."""

from collections.abc import Iterator, Sequence
from typing import Final

from volcano_py.admission.contract import Refusal
from volcano_py.admission.reading import quoted, words
from volcano_py.api.batch import LifecyclePolicy
from volcano_py.api.duration import DurationError, parse_go_duration

ANY: Final = "*"
EVENTS: Final = (
    ANY,
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
"""Events that policies may name."""

ACTIONS: Final = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
"""Actions that policies may name."""

_VALID: Final = f" valid events are {words(EVENTS)}, valid actions are {words(ACTIONS)}"


def flaws(policies: Sequence[LifecyclePolicy], path: str, shown: str) -> tuple[Refusal, ...]:
    """Return what is wrong with the policies of one owner; ``shown`` is their path in Volcano's sentences."""
    found = [*_flaws(policies, path, shown)]
    last = len(found) - 1
    return tuple(
        Refusal(f" {one.message};{f'{_VALID};' if index == last else ''}", one.field, one.hint)
        for index, one in enumerate(found)
    )


def _flaws(policies: Sequence[LifecyclePolicy], path: str, shown: str) -> Iterator[Refusal]:
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        where = f"{path}[{index}]"
        named = dict.fromkeys([*policy.events, *([policy.event] if policy.event else [])])
        code = policy.exit_code
        yield from duration_flaws(policy.timeout, f"{where}.timeout")
        if named and code is not None:
            hint = "make it two policies, one with the event and one with the exit code"
            yield Refusal("must not specify event and exitCode simultaneously", where, hint)
        elif named:
            yield from _event_flaws(policy, list(named), where, shown)
            for event in named:
                if event in events:
                    hint = f"keep one policy for {event}"
                    yield Refusal(f"duplicate event {event}  across different policy", where, hint)
                events.add(event)
        elif code is None:
            hint = "add an event, or the exit code of a container"
            yield Refusal("either event and exitCode should be specified", where, hint)
        elif code == 0:
            hint = "a container that ends with 0 has succeeded: use the event TaskCompleted"
            yield Refusal("0 is not a valid error code", f"{where}.exitCode", hint)
        else:
            if code in codes:
                yield Refusal(f"duplicate exitCode {code}", f"{where}.exitCode", f"keep one policy for {code}")
            codes.add(code)
    if ANY in events and len(events) > 1:
        hint = f"{ANY} stands for every event: take the other policies out, or name the events instead of {ANY}"
        yield Refusal("if there's * here, no other policy should be here", path, hint)


def duration_flaws(written: str | None, path: str) -> Iterator[Refusal]:
    """Judge a duration; nobody could wait for one that cannot be read."""
    if written is None:
        return
    try:
        parse_go_duration(written)
    except DurationError:
        yield Refusal(f"time: invalid duration {quoted(written)}", path, "write a duration such as 90s, 5m or 1h30m")


def _event_flaws(policy: LifecyclePolicy, named: Sequence[str], where: str, shown: str) -> Iterator[Refusal]:
    for event in named:
        if event not in EVENTS:
            sentence = f"{shown}: Invalid value: {quoted(event)}: invalid policy event"
            yield Refusal(sentence, f"{where}.event", f"use one of {', '.join(EVENTS)}")
    if policy.action not in ACTIONS:
        sentence = f"{shown}: Invalid value: {quoted(policy.action)}: invalid policy action"
        yield Refusal(sentence, f"{where}.action", f"use one of {', '.join(ACTIONS)}")
