"""Tells a schedule that violates an invariant so that a person understands it who does not know the code."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tests.simulation.faults import FAULTS
from tests.simulation.history import Line
from tests.simulation.invariants import INVARIANTS
from tests.simulation.narrator import TOLD
from tests.simulation.plan import Plan, Queue, Work, written
from tests.simulation.world import Outcome

MOST_LINES: Final = 120
"""So many lines of time are told; the last ones are those that matter most."""
_ALWAYS: Final = frozenset(
    (
        *("start", "kill", "pause", "resume", "failed", "ended", "strike", "over", "calm", "submit", "violation"),
        *("command", "scale", "release"),
    )
)
_WORDS: Final = {
    "start": "{} is started",
    "kill": "{} is killed",
    "pause": "{} is stopped for a while (SIGSTOP)",
    "resume": "{} goes on",
    "failed": "{} FAILS",
    "ended": "{} has ended (exit code)",
    "strike": "FAULT {}",
    "over": "fault over: {}",
    "calm": "{}",
    "submit": "submitted: {}",
    "command": "asked for: {}",
    "scale": "changed by its owner: {}",
    "release": "its finalizer is taken away: {}",
    "fault": "  struck: {}",
    "violation": "VIOLATION {}",
    TOLD: "{}",
    "log": "  log of {}",
}
_TIME: Final = re.compile(r"^ *[0-9.]+ s  ")
_CALM_WORDS: Final = "all faults are over; what is down is started again"


def tell(outcome: Outcome, cut: str = "") -> str:
    """Return the story of an outcome; ``cut`` says what was left out of its plan beforehand."""
    return "\n".join([*_head(outcome, cut), *_cast(outcome.plan), "", *_timeline(outcome), "", *_end(outcome)])


def _head(outcome: Outcome, cut: str) -> Iterator[str]:
    plan = outcome.plan
    found = outcome.violations[0].invariant if outcome.violations else "none violated"
    yield f"Seed {plan.seed} ({plan.size.name}): {found}"
    if outcome.violations:
        yield f"What must hold: {_doc(INVARIANTS.get(found))}"
    if cut:
        yield f"Cut down to what is needed: {cut}"
    yield ""


def _doc(documented: object) -> str:
    text = (getattr(documented, "__doc__", None) or "").strip()
    return text.partition("\n\n")[0].replace("\n", " ") or "the system comes to an end"


def _cast(plan: Plan) -> Iterator[str]:
    cpus = ", ".join(f"node-{place}: {cpu}" for place, cpu in enumerate(plan.nodes))
    yield f"The cluster: {_count(len(plan.nodes), 'node')} (CPUs: {cpus}), configuration {plan.conf}"
    queues = ", ".join(str(queue) for queue in (Queue("default"), *plan.queues))
    yield f"             queues {queues}"
    yield "             apiserver-a and apiserver-b serve one state; b may lag behind"
    more = "; webhooks-0" if plan.webhooks else ""
    yield f"             scheduler-0 and scheduler-1, of which one leads; controllers-0{more}"
    if plan.narrow:
        yield "             their queues take a few objects only"
    yield "The work:"
    yield from (f"  {work.at:7.3f} s  {_work(work)}" for work in sorted(plan.work, key=lambda work: work.at))
    if plan.orders:
        yield "The orders to queues:"
        yield from (f"  {order}" for order in sorted(plan.orders, key=lambda order: order.at))
    yield "The faults:" if plan.strikes else "No faults."
    for strike in sorted(plan.strikes, key=lambda strike: strike.at):
        yield f"  {strike}"
        kind = FAULTS.get(strike.kind)
        if kind is not None and kind.begin.__doc__ and not kind.begin.__qualname__.startswith("ruled"):
            yield f"             {_doc(kind.begin)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _work(work: Work) -> str:
    where = "" if work.space == "default" else f" in {work.space}"
    text = f"{work.name}{where}: {_count(work.pods, 'pod')} of {work.cpu} CPU"
    if work.kind != "single":
        text += f", at least {work.minimum} together, queue {work.queue}"
    text += f", {work.priority} priority" if work.priority else ""
    if work.ends_after_s:
        text += f"; each runs {work.ends_after_s:.1f} s" + (" and fails" if work.fails else "")
    if work.kind == "vcjob":
        text += f"; {_count(work.tasks, 'task')}" + (f", policy {work.policy}" if work.policy else "")
        text += "".join(f"; {action} after {after_s:.1f} s" for after_s, action in work.commands)
        text += f", plugins {' and '.join(work.plugins)}" if work.plugins else ""
        text += ", the second task waits for the first" if work.ordered else ""
        text += ", with a volume" if work.claim else ""
        text += f"; finalizers are taken away after {work.held_s:.1f} s" if work.held_s else ""
        text += "".join(f"; {pods} pods, at least {low}, after {at:.1f} s" for at, pods, low in work.scales)
    return f"{text}; deleted after {work.deleted_after_s:.1f} s" if work.deleted_after_s else text


def _timeline(outcome: Outcome) -> list[str]:
    """Return the lines that are decisive, the same ones in a row as one."""
    told = _together(line for line in outcome.lines if _matters(line, _named(outcome)))
    if len(told) <= MOST_LINES:
        return ["What happens:", *told]
    head = MOST_LINES // 4
    left_out = len(told) - MOST_LINES
    return ["What happens:", *told[:head], f"           ... {left_out} lines left out ...", *told[head - MOST_LINES :]]


def _named(outcome: Outcome) -> frozenset[str]:
    """Return the names of objects that a violation speaks of, with their owners' and nodes' names."""
    text = " ".join(violation.text for violation in outcome.violations)
    words = set(re.findall(r"[a-z0-9][a-z0-9./-]*[a-z0-9]", text))
    named = {word for word in words if not word.isdigit() and len(word) > 2}
    named |= {word.rpartition("/")[2] for word in named}
    spaces = {f"{work.space}/".removeprefix("default/") for work in outcome.plan.work} | {""}
    works = {space + work.name for work in outcome.plan.work for space in spaces}
    return frozenset(named | {work for work in works if any(word.startswith(f"{work}-") for word in named)})


def _matters(line: Line, named: frozenset[str]) -> bool:
    if line.kind in _ALWAYS or line.kind in ("log", "fault"):
        return True
    if line.kind != TOLD:
        return False
    kind, _, rest = line.what.partition(" ")
    name = rest.partition(":")[0]
    if kind == "lease" or (kind == "node" and " is deleted" in rest):
        return True
    return name in named or _of(name, named)


def _of(name: str, named: frozenset[str]) -> bool:
    """Say whether an object belongs to a named one: a pod to its gang, a PodGroup to its job."""
    return any(name.startswith(f"{one}-") for one in named)


def _together(lines: Iterable[Line]) -> list[str]:
    told: list[str] = []
    last, count = "", 0
    for line in lines:
        text = _say(line)
        if text == last:
            count += 1
            told[-1] = told[-1].partition("   (")[0] + f"   ({count} times)"
            continue
        last, count = text, 1
        told.append(f"{line.at:8.3f} s  {text}")
    return told


def _say(line: Line) -> str:
    what = _TIME.sub("", line.what) if line.kind == "strike" else line.what
    what = _CALM_WORDS if line.kind == "calm" else what
    return _WORDS.get(line.kind, line.kind + " {}").format(what)


def _end(outcome: Outcome) -> Iterator[str]:
    if not outcome.violations:
        yield f"Every invariant held; {outcome.bound} pods have a node after {outcome.virtual_s:.0f} s."
    for violation in outcome.violations:
        yield f"At {violation.at:.3f} s, {violation.invariant}: {violation.text}"
    yield ""
    yield "The plan, for tests/simulation/regressions/ (python -m tests.simulation story --plan FILE tells it again):"
    yield written(outcome.plan)
