"""From a seed to a plan."""

from dataclasses import replace
from typing import Final

from tests.simulation.draws import Draws
from tests.simulation.faults import FAULTS, Kind
from tests.simulation.plan import Order, Plan, Queue, Size, Strike, Work

_CONFS: Final = (
    *("helm-default", "helm-default", "helm-default+preempt", "helm-default+preempt"),
    *("helm-default+preempt+capacity", "built-in", "built-in+preempt"),
)
_KINDS: Final = ("gang", "gang", "vcjob", "vcjob", "vcjob", "single", "deployment")
_POLICIES: Final = (
    *("", "PodFailed RestartJob", "PodFailed RestartJob", "PodFailed AbortJob", "PodFailed TerminateJob"),
    *("PodFailed RestartTask", "PodFailed RestartPod", "TaskCompleted CompleteJob"),
)
_COMMANDS: Final = (("AbortJob", "ResumeJob"), ("RestartJob", "RestartJob"), ("AbortJob", "AbortJob"))
_WITH_WEBHOOKS: Final = 0.25
"""The part of the seeds in which webhooks run: they make a schedule a tenth more expensive."""
_NARROW: Final = 0.2
"""The part of the seeds in which the queues of the programs are full again and again."""
_WIDE: Final = 0.33
"""The part of the seeds in which users do more than to submit work: see `_widened`."""
_MORE_COMMANDS: Final = (("TerminateJob", "ResumeJob"), ("CompleteJob", "RestartJob"), ("RestartJob", "TerminateJob"))
_PLUGINS: Final = ((), ("svc",), ("env", "svc"), ("ssh", "svc"), ("env", "ssh", "svc"))
_SPACES: Final = ("default", "default", "team")
_TOGETHER: Final = 0.5
"""How often a fault begins soon after another one, so that the two meet."""
_AT_WORK: Final = 0.6
"""How often a fault begins soon after work was submitted, near its binds."""


def draw_plan(seed: int, size: Size) -> Plan:
    """Return the plan of a seed."""
    draws = Draws(seed, "plan")
    nodes = tuple(draws.one_of((4, 4, 6)) for _ in range(draws.whole(*size.nodes)))
    queues = (Queue("default"), _draw_queue(seed, "research", sum(nodes)))
    work = tuple(draw_work(seed, size, number, queues) for number in range(size.works))
    webhooks = draws.happens(_WITH_WEBHOOKS)
    conf = draws.one_of(_CONFS)
    count = draws.whole(*size.strikes)
    strikes: list[Strike] = []
    for number in range(count):
        strikes.append(_draw_strike(seed, size, number, webhooks, work, strikes))
    narrow = Draws(seed, "narrow").happens(_NARROW)
    plan = Plan(seed, size, conf, nodes, queues[1:], work, tuple(strikes), webhooks, narrow)
    return _widened(plan) if Draws(seed, "wide").happens(_WIDE) else plan


def _draw_queue(seed: int, name: str, cpus: int) -> Queue:
    draws = Draws(seed, f"queue {name}")
    limited, guaranteed = draws.happens(0.25), draws.happens(0.25)
    most = max(6, cpus * draws.whole(4, 9) // 10)
    return Queue(
        name,
        draws.whole(1, 4),
        capability=str(most) if limited else "",
        guarantee=str(draws.whole(1, 4)) if guaranteed else "",
        deserved=str(min(max(4, cpus // 2), most)),  # between guarantee and capability, as webhooks demand
        reclaimable=draws.happens(0.8),
    )


def draw_work(seed: int, size: Size, number: int, queues: tuple[Queue, ...]) -> Work:
    """Return one piece of work."""
    draws = Draws(seed, f"work {number}")
    kind = draws.one_of(_KINDS)
    pods = draws.whole(1, 3) if kind == "single" else draws.whole(2, 6)
    commands: tuple[tuple[float, str], ...] = ()
    if kind == "vcjob" and draws.happens(0.3):
        first, second = draws.one_of(_COMMANDS)
        after = round(draws.between(0.5, size.length_s * 0.3), 3)
        commands = ((after, first), (round(after + draws.between(0.1, 8.0), 3), second))
    ends = draws.happens(0.4)
    return Work(
        number,
        at=round(draws.between(0.0, size.length_s * 0.7), 3),
        kind=kind,
        pods=pods,
        minimum=pods if draws.happens(0.7) else draws.whole(1, pods),
        cpu=draws.one_of(("1", "1", "2", "3")),
        queue=draws.one_of(queues).name,
        priority=draws.one_of(("", "low", "high", "high")),
        ends_after_s=round(draws.between(3.0, size.length_s * 0.5), 3) if ends and kind != "deployment" else 0.0,
        fails=draws.happens(0.3),
        tasks=draws.whole(1, 2),
        policy=draws.one_of(_POLICIES),
        deleted_after_s=round(draws.between(1.0, size.length_s * 0.4), 3) if draws.happens(0.2) else 0.0,
        commands=commands,
    )


def _draw_strike(
    seed: int, size: Size, number: int, webhooks: bool, work: tuple[Work, ...], before: list[Strike]
) -> Strike:
    """Return one fault: it may come at any time, together with the one before, or when work is being placed."""
    draws = Draws(seed, f"strike {number}")
    kinds: list[Kind] = [kind for kind in FAULTS.values() if webhooks or not kind.webhooks for _ in range(kind.weight)]
    at = draws.between(0.5, size.length_s * 0.85)
    if before and draws.happens(_TOGETHER):
        at = before[-1].at + draws.between(0.0, 3.0)
    elif draws.happens(_AT_WORK):
        at = draws.one_of(work).at + draws.between(0.0, 1.5)
    at = round(min(max(at, 0.5), size.length_s * 0.9), 3)
    return draws.one_of(kinds).strike(number, at, draws)


def _widened(plan: Plan) -> Plan:
    """Return a plan with a second namespace, orders to queues, and jobs with more than pods; all else stays."""
    unused: dict[str, list[int]] = {}
    work: list[Work] = []
    for one in plan.work:
        wider = _widened_work(plan, one)
        if wider.space == "default":
            unused.setdefault(one.kind, []).append(one.number)
        elif unused.get(one.kind):
            wider = replace(wider, called=unused[one.kind].pop(0))
        work.append(wider)
    above = replace(plan.queues[0], name="division", weight=1)  # it has what the queue below it has
    queues = (above, *(replace(queue, parent=above.name) for queue in plan.queues))
    return replace(plan, work=tuple(work), queues=queues, orders=_draw_orders(plan, queues))


def _widened_work(plan: Plan, work: Work) -> Work:
    draws = Draws(plan.seed, f"wide work {work.number}")
    space = draws.one_of(_SPACES)
    if work.kind != "vcjob":
        return replace(work, space=space)
    tasks = draws.one_of((work.tasks, 2)) if work.pods > 1 else 1
    scales: list[tuple[float, int, int]] = []
    at = 0.0
    for _ in range(draws.one_of((0, 0, 1, 2))):
        at = round(at + draws.between(0.2, plan.size.length_s * 0.2), 3)
        pods = draws.whole(tasks, 6)
        scales.append((at, pods, draws.whole(tasks, pods)))
    commands = work.commands
    if draws.happens(0.25):
        after = round(draws.between(0.5, plan.size.length_s * 0.3), 3)
        first, second = draws.one_of(_MORE_COMMANDS)
        commands = ((after, first), (round(after + draws.between(0.01, 8.0), 3), second))
    return replace(
        work,
        space=space,
        tasks=tasks,
        commands=commands,
        plugins=draws.one_of(_PLUGINS),
        ordered=tasks > 1 and draws.happens(0.5),
        claim=draws.happens(0.3),
        held_s=round(draws.between(0.5, 12.0), 3) if draws.happens(0.25) else 0.0,
        scales=tuple(scales),
    )


def _draw_orders(plan: Plan, queues: tuple[Queue, ...]) -> tuple[Order, ...]:
    """Return orders that close queues, most of them to be opened again, some of them at once."""
    draws = Draws(plan.seed, "orders")
    orders: list[Order] = []
    at = 0.0
    for _ in range(draws.whole(1, 3)):
        queue = draws.one_of((*queues, queues[-1], Queue("default"))).name
        at += draws.between(0.5, plan.size.length_s * 0.3)
        opened = draws.happens(0.7)
        again = at + (draws.between(0.01, 0.5) if draws.happens(0.5) else draws.between(0.5, 15.0))
        orders.append(Order(len(orders), round(at, 3), "CloseQueue", queue))
        if opened:
            orders.append(Order(len(orders), round(again, 3), "OpenQueue", queue))
    return tuple(orders)
