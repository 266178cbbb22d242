"""Which victim candidates plugins permit, one at a time, in plain Python: the rules of Volcano's victim functions.

A candidate is (job, queue, priority, request); a request is resource -> amount. A call is about one node, and counting
starts over with every call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Amounts = Mapping[str, float]
EPSILON = 0.1


@dataclass(frozen=True)
class Candidate:
    job: str
    queue: str
    priority: int
    request: Amounts
    role: str = ""


def gang(
    candidates: Sequence[Candidate],
    ready: Mapping[str, int],
    minimum: Mapping[str, int],
    of_roles: Mapping[str, Mapping[str, int]],
    minimums: Mapping[str, Mapping[str, int]],
) -> list[bool]:
    """A job may lose tasks while it has more ready tasks than its minimum, and the role more than its own."""
    left, in_role = dict(ready), {job: dict(counts) for job, counts in of_roles.items()}
    answers = []
    for candidate in candidates:
        job, role = candidate.job, candidate.role
        least = minimums[job].get(role, 0) if minimums[job] else -1
        goes = left[job] > minimum[job] and in_role[job].get(role, 0) > least
        left[job] -= goes
        if goes:
            in_role[job][role] -= 1
        answers.append(goes)
    return answers


def priority(
    candidates: Sequence[Candidate], jobs: Mapping[str, int], preemptor: str, preemptor_priority: int
) -> list[bool]:
    """Tasks of jobs with lower priority, and tasks of lower priority in the preemptor's own job."""
    return [
        candidate.priority < preemptor_priority if candidate.job == preemptor else jobs[candidate.job] < jobs[preemptor]
        for candidate in candidates
    ]


def drf(
    candidates: Sequence[Candidate], taken: Mapping[str, Amounts], total: Amounts, preemptor: str, asked: Amounts
) -> list[bool]:
    """Tasks whose job keeps at least the share that the preemptor's job would get; all candidates are subtracted."""
    wanted = _share(_plus(taken[preemptor], asked, 1), total)
    left = {job: dict(amounts) for job, amounts in taken.items()}
    answers = []
    for candidate in candidates:
        left[candidate.job] = _plus(left[candidate.job], candidate.request, -1)
        theirs = _share(left[candidate.job], total)
        answers.append(wanted < theirs or abs(wanted - theirs) <= 1e-6)
    return answers


def proportion(
    candidates: Sequence[Candidate], taken: Mapping[str, Amounts], deserved: Mapping[str, Amounts]
) -> list[bool]:
    """Tasks of queues that hold more than they deserve of some resource."""
    left = {queue: dict(amounts) for queue, amounts in taken.items()}
    answers = []
    for candidate in candidates:
        held, due = left[candidate.queue], deserved[candidate.queue]
        goes = any(held.get(name, 0) >= due.get(name, 0) + EPSILON for name in held)
        if goes:
            left[candidate.queue] = _plus(held, candidate.request, -1)
        answers.append(goes)
    return answers


def _plus(amounts: Amounts, more: Amounts, sign: int) -> dict[str, float]:
    names = {*amounts, *more}
    return {name: amounts.get(name, 0.0) + sign * more.get(name, 0.0) for name in names}


def _share(amounts: Amounts, total: Amounts) -> float:
    return max((amounts.get(name, 0.0) / amount for name, amount in total.items() if amount >= EPSILON), default=0.0)
