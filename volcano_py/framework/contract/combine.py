"""How the answers of several plugins are combined; `contract.extension_points` names the rule of each question."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.contract.extension_points import Vote, Votes
from volcano_py.framework.contract.failures import invalid, raised
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Reason

# An attribute of an enum costs a call, and votes are asked for every job.
_REJECT: Final = Vote.REJECT
_PERMIT: Final = Vote.PERMIT


class Point:
    """One plugin at one extension point: the method to call, and the name under which a failure is reported."""

    __slots__ = ("ask", "guard", "method", "plugin", "trusted")

    def __init__(
        self,
        plugin: Any,
        method: str,
        ask: Callable[..., Any] | None = None,
        *,
        trusted: bool = False,
        guard: "Guard | None" = None,
    ) -> None:
        """Take the plugin, the name of its method, and the function to call if it is not that method itself.

        The answers of a ``trusted`` point, of a built-in plugin, are not checked again and again. The ``guard`` makes
        the functions that ask a plugin of others.
        """
        self.plugin = plugin
        self.method = method
        self.ask = ask or getattr(plugin, method)
        self.trusted = trusted
        self.guard = guard

    def other(self, method: str, ask: Callable[..., Any] | None = None, kind: str = "") -> "Point":
        """Return the point of the same plugin for another method, or for a function that the plugin has returned.

        ``kind`` says what its answers must be, if the name of the method does not (`contract.answers`).
        """
        if self.guard is None:
            return Point(self.plugin, method, ask)
        return Point(self.plugin, method, self.guard(self.plugin, method, ask, kind or method), guard=self.guard)

    def __call__(self, *args: Any) -> Any:
        """Call the plugin; raise any error of it as PluginFailed."""
        try:
            return self.ask(*args)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything, and must not end the cycle
            self.fail(error)

    def fail(self, error: BaseException) -> NoReturn:
        """Raise an error of the plugin as PluginFailed.

        Rules that ask once per task call ``ask`` themselves and use this: one more call would double their cost.
        """
        if isinstance(error, PluginFailed):
            raise error
        raise raised(self.plugin, self.method, error) from error

    def array(self, n: int, *args: Any) -> Any:
        """Ask for an array of n numbers; anything else is a failure of the plugin."""
        try:
            answer = self.ask(*args)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see `__call__`
            self.fail(error)
        if not isinstance(answer, np.ndarray) or answer.shape != (n,):
            found = f"shape {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
            raise invalid(self.plugin, self.method, f"expected an array of shape ({n},), got {found}")
        return answer

    def finite(self, n: int, *args: Any) -> Any:
        """Ask for an array of n finite numbers."""
        answer = self.array(n, *args)
        try:
            finite = np.isfinite(answer).all()
        except TypeError:  # an array of objects or texts
            finite = False
        if not finite:
            raise invalid(self.plugin, self.method, "answered with NaN or infinity")
        return answer


Guard = Callable[[Any, str, Callable[..., Any] | None, str], Callable[..., Any]]
"""Takes a plugin, a method, the function to call if it is not that method, and the kind of answer.

Returns a function that asks and checks the answer."""


class Watcher(NamedTuple):
    """A plugin that is told of placements."""

    placed: Point
    freed: Point


Points = Sequence[Point]
Tiers = Sequence[Points]


def _raise(failure: PluginFailed) -> None:
    raise failure


Ignore = Callable[[PluginFailed], None]
"""Receives a failed answer that the rule continues without; the default raises it."""


def sort_keys(points: Points, n: int, view: Any, ignore: Ignore = _raise) -> list[Floats]:
    """First difference decides: return the keys of all plugins, most important first.

    An order is a preference, so the key of a plugin that fails is 0 for all.
    """
    keys: list[Floats] = []
    for point in points:
        try:
            keys.append(point.finite(n, view))
        except PluginFailed as failure:
            ignore(failure)
            keys.append(np.zeros(n))
    return keys


def namespace_keys(points: Points, queue: Any, namespaces: Sequence[str], ignore: Ignore = _raise) -> list[Floats]:
    """First difference decides: return the keys of all plugins for the namespaces of a queue; see `sort_keys`."""
    keys: list[Floats] = []
    for point in points:
        try:
            keys.append(point.finite(len(namespaces), queue, namespaces))
        except PluginFailed as failure:
            ignore(failure)
            keys.append(np.zeros(len(namespaces)))
    return keys


def first_difference(points: Points, *args: Any, ignore: Ignore = _raise) -> float:
    """First non-zero comparison decides; 0 if no plugin has an opinion. A plugin that fails has none."""
    for point in points:
        try:
            answer = float(point(*args))
        except PluginFailed as failure:
            ignore(failure)
            continue
        if answer:
            return answer
    return 0.0


def first_refusal(points: Points, *args: Any) -> Any:
    """All must pass; the first answer that is not None is the refusal."""
    for point in points:
        answer = point(*args)
        if answer is not None:
            return answer
    return None


def any_yes(points: Points, *args: Any) -> bool:
    """Return whether any says yes."""
    for point in points:
        try:
            if point.ask(*args):
                return True
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see `Point.__call__`
            point.fail(error)
    return False


def smallest(points: Points, ceiling: int, *args: Any) -> int:
    """All must allow: return the smallest number allowed, at most ``ceiling`` and at least 0."""
    allowed = ceiling
    for point in points:
        try:
            allowed = min(allowed, int(point.ask(*args, allowed)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see `Point.__call__`
            point.fail(error)
    return max(0, allowed)


def largest(points: Points, *args: Any) -> int:
    """All must say 0: return the largest number, 0 without any plugin."""
    found = 0
    for point in points:
        try:
            found = max(found, int(point.ask(*args)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see `Point.__call__`
            point.fail(error)
    return found


def vote(tiers: Tiers, *args: Any) -> bool:
    """Return the result of a vote: a reject ends it; a tier with a permit ends it; otherwise yes."""
    return rejection(tiers, *args) is None


def rejection(tiers: Tiers, *args: Any) -> Vote | Reason | None:
    """Return the answer that ended a vote with no, None if it ended with yes; a reason counts as a reject."""
    for tier in tiers:
        permitted = False
        for point in tier:
            answer: Vote | Reason = point(*args)
            if answer == _REJECT or isinstance(answer, Reason):
                return answer
            permitted |= answer == _PERMIT
        if permitted:
            return None
    return None


def rejections(
    tiers: Tiers, jobs: Rows, failed: Container[Any] = (), ignore: Ignore = _raise
) -> tuple[Ints, list[Reason]]:
    """Return for which reasons a vote on these jobs, rows (n,), ends with no, as far as shortcuts tell.

    The first result has for each job the place of its reason, (n,), or -1 where the job must be put to the vote.
    Nothing is known from a plugin on that has ``failed`` to open.
    """
    found, reasons = np.full(len(jobs), -1, dtype=np.int64), list[Reason]()
    open_ = np.ones(len(jobs), dtype=bool)  # jobs about which all answers so far are known and none ends the vote
    for tier in tiers:
        permitted = np.zeros(len(jobs), dtype=bool)
        for point in tier:
            if point.plugin in failed:
                return found, reasons
            try:
                votes: Votes | None = point.other("enqueueable_jobs")(jobs)
                if votes is None:
                    return found, reasons
                _check_votes(point, votes, len(jobs))
            except PluginFailed as failure:
                ignore(failure)
                return found, reasons
            # One entry more: the place -1 stands for a job that the plugin must be asked about.
            of_reason = np.full(len(votes.answers) + 1, -1)
            goes_on, permits = np.zeros((2, len(votes.answers) + 1), dtype=bool)
            for place, answer in enumerate(votes.answers):
                if isinstance(answer, Reason):
                    of_reason[place] = len(reasons)
                    reasons.append(answer)
                else:
                    goes_on[place], permits[place] = answer != _REJECT, answer == _PERMIT
            found = np.where(open_, of_reason[votes.places], found)
            open_ &= goes_on[votes.places]
            permitted |= permits[votes.places]
        open_ &= ~permitted
    return found, reasons


def starving(tiers: Tiers, *args: Any) -> bool:
    """The first tier with such a plugin decides, and all in it must say yes; without any: no."""
    for tier in tiers:
        if tier:
            return all(point(*args) for point in tier)
    return False


def intersected(tiers: Tiers, preemptor: Any, candidates: VictimCandidates) -> Bools:
    """Intersect answers within a tier; for each group the first tier that leaves a candidate decides. Shape (n,).

    An empty answer or an empty intersection ends a tier for the group. (In Volcano, after an empty intersection, the
    next plugin of the tier starts again with its own candidates, which the other plugins refused.)
    """
    n = len(candidates)
    result = np.zeros(n, dtype=bool)
    open_ = np.ones(n, dtype=bool)  # candidates whose group is not decided yet
    for tier in tiers:
        agreed: Bools | None = None
        for point in tier:
            answer = point(preemptor, candidates)
            if answer is not None:
                _check_mask(point, answer, n)
                agreed = answer if agreed is None else agreed & answer
        if agreed is None:
            continue
        result |= agreed & open_
        if tier is tiers[-1]:
            break
        open_ &= ~_in_groups_of(agreed, candidates.groups)
        if not open_.any():
            break
    return result


def united(tiers: Tiers, candidates: VictimCandidates) -> Bools:
    """Unite answers within a tier; the first tier that names a candidate decides. Shape (n,)."""
    for tier in tiers:
        named = np.zeros(len(candidates), dtype=bool)
        for point in tier:
            answer = point(candidates)
            _check_mask(point, answer, len(candidates))
            named |= answer
        if named.any():
            return named
    return np.zeros(len(candidates), dtype=bool)


def protected(points: Points, preemptor: Any, candidates: VictimCandidates) -> Bools:
    """Any says so: return which candidates are protected, shape (n,)."""
    found = np.zeros(len(candidates), dtype=bool)
    for point in points:
        answer = point(preemptor, candidates)
        _check_mask(point, answer, len(candidates))
        found |= answer
    return found


def _in_groups_of(chosen: Bools, groups: Rows) -> Bools:
    """Return the candidates whose group has a chosen candidate, shape (n,)."""
    decided = np.zeros(int(groups[-1]) + 1 if len(groups) else 0, dtype=bool)
    decided[groups[chosen]] = True
    return decided[groups]


def _check_mask(point: Point, answer: Any, n: int) -> None:
    if not isinstance(answer, np.ndarray) or answer.dtype != bool or answer.shape != (n,):
        found = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
        raise invalid(point.plugin, point.method, f"expected a mask of shape ({n},), got {found}")


def _check_votes(point: Point, votes: Any, n: int) -> None:
    places = votes.places if isinstance(votes, Votes) else None
    if (
        not isinstance(places, np.ndarray)
        or places.shape != (n,)
        or not np.issubdtype(places.dtype, np.integer)
        or places.min(initial=0) < -1
        or places.max(initial=-1) >= len(votes.answers)
    ):
        text = f"it must return Votes: for each of {n} jobs the place of an answer, or -1, in an array of integers"
        raise invalid(point.plugin, "enqueueable_jobs", text)


def notify(points: Points, *args: Any, ignore: Ignore = _raise) -> None:
    """Tell all plugins: what one of them makes of it is no reason to leave out the others."""
    for point in points:
        try:
            point(*args)
        except PluginFailed as failure:
            ignore(failure)


def total(points: Points, n: int, *args: Any, again: bool = False) -> Floats:
    """Sum of scores, shape (n,).

    ``again`` says that the same was asked about all nodes before: the answers of trusted plugins were finite then.
    """
    scores: Floats | None = None
    for point in points:
        if again and point.trusted:
            try:
                answer: Floats = point.ask(*args)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - see `Point.__call__`
                point.fail(error)
        else:
            answer = point.finite(n, *args)
        if answer.dtype.kind != "f":  # sums of small integers wrap, and those of bools are bools
            answer = answer.astype(np.float64)
        scores = answer if scores is None else scores + answer
    return np.zeros(n) if scores is None else scores


def refused(points: Points, n: int, *args: Any) -> NDArray[np.bool_] | None:
    """Return for each node whether any plugin refuses it, shape (n,); None without any plugin."""
    found: NDArray[np.bool_] | None = None
    for point in points:
        answer = point.array(n, *args).astype(bool)
        found = answer if found is None else found | answer
    return found


def first_refusals(points: Points, offsets: Iterable[int], n: int, *args: Any) -> NDArray[np.int16]:
    """First refusal per node: return 0 where all pass, else the plugin's offset plus the number of its reason."""
    verdicts: NDArray[np.int16] | None = None
    for point, offset in zip(points, offsets, strict=True):
        answer = point.array(n, *args)
        if offset:
            answer = np.where(answer != 0, answer + np.int16(offset), np.int16(0))
        verdicts = answer if verdicts is None else np.where(verdicts != 0, verdicts, answer)
    return np.zeros(n, dtype=np.int16) if verdicts is None else verdicts
