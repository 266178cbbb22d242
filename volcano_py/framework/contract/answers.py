"""What a valid answer to each question is; `hooks.border` holds the answers of plugins of others against it.

An invalid answer must never count as a permit, and it must not end the cycle later, at a place that knows no plugin.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from volcano_py.framework.contract.extension_points import Vote, Votes
from volcano_py.framework.contract.normalization import NormalizedScore
from volcano_py.framework.contract.plugin import DependsOn
from volcano_py.framework.retired import method
from volcano_py.framework.state.state import State
from volcano_py.model.rejections import Reason


class InvalidAnswer(Exception):
    """Says what is wrong with an answer, and what a valid one is."""


class Asked(NamedTuple):
    """A question that a plugin was asked."""

    plugin: Any
    args: tuple[Any, ...]
    state: State


Check = Callable[[Asked, Any], Any]
"""Returns the answer in the form that the framework works with; raises InvalidAnswer."""
_Size = Callable[[Asked], int]
_NUMBERS: Final = "biuf"  # kinds of dtypes
_VOTES: Final = {vote.value: vote for vote in Vote}


def _nodes(asked: Asked) -> int:
    return len(asked.state.nodes)


def _jobs(asked: Asked) -> int:
    return len(asked.state.jobs)


def _queues(asked: Asked) -> int:
    return len(asked.state.queues)


def _first(asked: Asked) -> int:
    return len(asked.args[0])


def _second(asked: Asked) -> int:
    return len(asked.args[1])


def _tasks_of_view(asked: Asked) -> int:
    return len(asked.args[0].status)


def _tasks(asked: Asked) -> int:
    return len(asked.state.tasks.records)


def found(answer: Any) -> str:
    """Describe an answer for an error message."""
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype} of shape {answer.shape}"
    text = repr(answer)
    return f"{type(answer).__name__} {text if len(text) <= 40 else text[:40] + '...'}"


def _array(answer: Any, shape: tuple[int, ...], kinds: str, what: str) -> Any:
    if not isinstance(answer, np.ndarray) or answer.shape != shape or answer.dtype.kind not in kinds:
        raise InvalidAnswer(f"expected an array of shape {shape}, {what}, got {found(answer)}")
    return answer


def _numbers(size: _Size, *, infinite: bool = False) -> Check:
    def check(asked: Asked, answer: Any) -> Any:
        numbers = _array(answer, (size(asked),), _NUMBERS, "of numbers")
        if np.isnan(numbers).any() if infinite else not np.isfinite(numbers).all():
            raise InvalidAnswer("answered with NaN" if infinite else "answered with NaN or infinity")
        return numbers if numbers.flags.writeable else numbers.copy()  # the framework may add to it in place

    return check


def _mask(size: _Size) -> Check:
    def check(asked: Asked, answer: Any) -> Any:
        n = (size(asked),)
        if not isinstance(answer, np.ndarray) or answer.dtype != bool or answer.shape != n:
            raise InvalidAnswer(f"expected a mask of shape {n}: an array of bool, got {found(answer)}")
        return answer

    return check


def _or_none(check: Check) -> Check:
    return lambda asked, answer: None if answer is None else check(asked, answer)


def _verdicts(reasons: str) -> Check:
    def check(asked: Asked, answer: Any) -> Any:
        most = len(getattr(asked.plugin, reasons))
        what = f"0 where a node passes, 1 to {most} where that one of its {reasons} refuses it"
        verdicts = _array(answer, (_second(asked),), _NUMBERS, f"of whole numbers: {what}")
        if verdicts.dtype == bool:
            raise InvalidAnswer(f"expected whole numbers: {what}, got a mask: 0, which is False, passes")
        if not ((verdicts >= 0) & (verdicts <= most) & (verdicts == np.floor(verdicts))).all():
            wrong = np.unique(verdicts[~((verdicts >= 0) & (verdicts <= most) & (verdicts % 1 == 0))])
            raise InvalidAnswer(f"expected whole numbers: {what}, got {', '.join(map(str, wrong[:3].tolist()))}")
        return verdicts.astype(np.int16)

    return check


def _refusals(asked: Asked, answer: Any) -> Any:
    shape = (len(asked.plugin.reasons), _second(asked))
    if not isinstance(answer, np.ndarray) or answer.dtype != bool or answer.shape != shape:
        raise InvalidAnswer(f"expected an array of bool of shape {shape}, got {found(answer)}")
    return answer


def _reason_or_none(asked: Asked, answer: Any) -> Any:
    if answer is not None and not isinstance(answer, Reason):
        raise InvalidAnswer(f"expected None or a Reason (volcano_py.model.rejections), got {found(answer)}")
    return answer


def _vote(asked: Asked, answer: Any) -> Any:
    if isinstance(answer, int | np.integer) and not isinstance(answer, bool) and answer in _VOTES:
        return _VOTES[int(answer)]
    if not isinstance(answer, Reason):
        text = "expected Vote.REJECT, Vote.ABSTAIN, Vote.PERMIT or a Reason (volcano_py.model.rejections)"
        raise InvalidAnswer(f"{text}, got {found(answer)}")
    return answer


def _votes(asked: Asked, answer: Any) -> Any:
    n = _first(asked)
    places = answer.places if isinstance(answer, Votes) else None
    if (
        not isinstance(places, np.ndarray)
        or places.shape != (n,)
        or places.dtype.kind not in "iu"
        or places.min(initial=0) < -1
        or places.max(initial=-1) >= len(answer.answers)
    ):
        raise InvalidAnswer(
            f"it must return Votes: for each of {n} jobs the place of an answer, or -1, in an array of integers"
        )
    return Votes(places, [_vote(asked, one) for one in answer.answers])


def _flag(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, bool | np.bool_):
        raise InvalidAnswer(f"expected True or False, got {found(answer)}")
    return bool(answer)


def _truth(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, Real | np.bool_) or np.isnan(float(answer)):
        raise InvalidAnswer(f"expected True or False, or a number, which is False if it is 0, got {found(answer)}")
    return bool(answer)


def _is_number(answer: Any) -> bool:
    return isinstance(answer, Real) and not isinstance(answer, bool)


def _comparison(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, Real | np.bool_) or np.isnan(float(answer)):
        text = "expected a number: negative if left goes first, positive if right does, 0 for no opinion"
        raise InvalidAnswer(f"{text}, got {found(answer)}")
    return float(answer)


def _count(asked: Asked, answer: Any) -> Any:
    if not _is_number(answer) or not np.isfinite(float(answer)) or answer < 0 or answer != int(answer):
        raise InvalidAnswer(f"expected a whole number, 0 or more, got {found(answer)}")
    return int(answer)


def _room_or_lack(asked: Asked, answer: Any) -> Any:
    """Take what a plain formula gives, such as a difference below 0 or a quotient, as a count."""
    if not _is_number(answer) or not np.isfinite(float(answer)):
        raise InvalidAnswer(f"expected a whole number, 0 or more, got {found(answer)}")
    return max(0, math.floor(answer))


def _surely_valid(asked: Asked, answer: Any) -> Any:
    return answer if isinstance(answer, bool) else _mask(_jobs)(asked, answer)


def _keys_of_queues(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, Sequence | np.ndarray) or isinstance(answer, str):
        raise InvalidAnswer(f"expected a list of arrays, one for each key, or None, got {found(answer)}")
    return [_numbers(_queues, infinite=True)(asked, key) for key in answer]


def _victim_keys(asked: Asked, answer: Any) -> Any:
    n = _queues(asked)
    if (
        not isinstance(answer, np.ndarray)
        or answer.ndim != 2
        or answer.shape[1] != n
        or answer.dtype.kind not in _NUMBERS
        or np.isnan(answer).any()
    ):
        raise InvalidAnswer(f"expected None or an array of numbers of shape (n_keys, {n}), got {found(answer)}")
    return answer


def _hashable(asked: Asked, answer: Any) -> Any:
    try:
        frozenset((answer,))
    except TypeError as error:
        raise InvalidAnswer(f"expected something hashable, such as a tuple, got {found(answer)}") from error
    return answer


def _equivalence_keys(asked: Asked, answer: Any) -> Any:
    return _array(answer, (_tasks(asked),), "iu", "of integers")


def _depends(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, DependsOn):
        raise InvalidAnswer(f"expected a DependsOn, such as DependsOn.NODE_ALONE, got {found(answer)}")
    return answer


def _inter_pod_filter(asked: Asked, answer: Any) -> Any:
    try:
        complete = callable(method(answer, "unresolvable", "hopeless")) and callable(answer.allowed)
        complete = complete and isinstance(answer.own_pods_matter, bool | np.bool_)
    except AttributeError:
        complete = False
    if not complete:
        text = "expected None or an InterPodFilter: own_pods_matter, allowed() and unresolvable()"
        raise InvalidAnswer(f"{text}, got {found(answer)}")
    return answer


def _inter_pod_scores(asked: Asked, answer: Any) -> Any:
    if not callable(getattr(answer, "scores", None)):
        raise InvalidAnswer(f"expected None or InterPodScores, with scores(group), got {found(answer)}")
    return answer


def _normalized_orders(asked: Asked, answer: Any) -> Any:
    if not isinstance(answer, Sequence) or not all(isinstance(one, NormalizedScore) for one in answer):
        raise InvalidAnswer(f"expected a list of NormalizedScore, got {found(answer)}")
    return answer


_victims: Final = _or_none(_mask(_second))
_queue_mask: Final = _or_none(_mask(_queues))

CHECKS: Final[Mapping[str, Check]] = {
    "job_order": _numbers(_first),
    "task_order": _numbers(_tasks_of_view),
    "queue_order": _comparison,
    "queue_keys": _or_none(_keys_of_queues),
    "namespace_order": _numbers(_second),
    "job_valid": _reason_or_none,
    "surely_valid": _surely_valid,
    "job_enqueueable": _vote,
    "enqueueable_jobs": _or_none(_votes),
    "missing": _room_or_lack,
    "job_pipelined": _vote,
    "overused": _flag,
    "overused_queues": _queue_mask,
    "why_overused": _reason_or_none,
    "allocatable": _room_or_lack,
    "full_queues": _queue_mask,
    "why_not_allocatable": _reason_or_none,
    "static_predicate": _verdicts("static_reasons"),
    "static_part": _hashable,
    "predicate": _verdicts("reasons"),
    "refusals": _refusals,
    "depends": _depends,
    "equivalence_keys": _or_none(_equivalence_keys),
    "inter_pod_filter": _or_none(_inter_pod_filter),
    "InterPodFilter.allowed": _mask(_nodes),
    "InterPodFilter.unresolvable": _mask(_nodes),
    "inter_pod_scores": _or_none(_inter_pod_scores),
    "InterPodScores.scores": _numbers(_nodes),
    "node_order": _numbers(_second),
    "normalized_orders": _normalized_orders,
    "NormalizedScore.part": _hashable,
    "NormalizedScore.raw": _numbers(_second),
    "most_domains": _count,
    "domain_order": _numbers(_second),
    "leaf_order": _or_none(_numbers(_nodes)),
    "near_order": _numbers(_nodes),
    "job_starving": _truth,
    "starving_jobs": _or_none(_mask(_jobs)),
    "preemptable": _victims,
    "safe_from": _or_none(_numbers(_first, infinite=True)),
    "reclaimable": _victims,
    "unified_evictable": _victims,
    "victim_tasks": _mask(_first),
    "protected": _mask(_second),
    "preemptive": _flag,
    "sated_queues": _queue_mask,
    "victim_queue_order": _comparison,
    "victim_queue_keys": _or_none(_victim_keys),
    "loses_first": _victims,
}
"""What is checked of an answer, by method; what a method returns that is not here is not looked at."""


def reasons_of(plugin: Any, attribute: str) -> Sequence[Reason] | None:
    """Return the reasons that a plugin states in an attribute, None if it does not state any in a valid form."""
    stated = getattr(plugin, attribute, None)
    valid = isinstance(stated, tuple | list) and all(isinstance(one, Reason) for one in stated)
    return stated if valid else None


def attributes(plugin: Any, points: frozenset[type]) -> str | None:
    """Return what is wrong with the reasons that a plugin states, None if nothing is."""
    for point in sorted(points, key=lambda point: point.__name__):
        for name in ("reasons", "static_reasons"):
            if name not in vars(point).get("__annotations__", {}):
                continue
            if reasons_of(plugin, name) is None:
                stated = getattr(plugin, name, None)
                example = 'Reason("my-plugin", "too-small", "the node is too small")'
                got = "none" if stated is None else found(stated)
                return f"it needs {name} = ({example},), from volcano_py.model.rejections, got {got}"
    return None
