"""Placing gangs by network topology: a whole gang in one domain, and each of its sub-groups in one domain below it.

    domains that the job may use, the lowest tier first ──▶ in each: every sub-group, the necessary ones first
        domains that the sub-group may use in there, the lowest tier first ──▶ its tasks, near each other

A domain is tried only if all waiting tasks, taken by themselves, may fit there. If that holds nowhere, a domain for the
least that the gang needs is enough. Within a tier the plugins' score of the domain decides (`DomainOrder`). Among
equals the domain that leaves most usable room to others is first: the one where the fewest tasks of this kind fit. Of
the domains for a whole job with sub-groups, those with a solution are compared by the sum of the scores of their
sub-groups.

A job without policies for sub-groups is one part; its goal is that of the job. (Volcano: actions/allocate, the path of
jobs with a hard topology or with sub-groups, and soft topologies as hard ones that allow the whole cluster.)
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.topology import DomainOrder, DomainView, NearOrder, Part, TierLimits
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing import domain_search
from volcano_py.framework.placing.domain_room import DomainRoom, has_room
from volcano_py.framework.placing.near_placement import NearPlacement
from volcano_py.framework.placing.pieces import Attempt, Notes, Piece, Pieces
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.placing.task_loop import Goal, JobGoal, TaskLoop
from volcano_py.framework.placing.topology_refusal import PLUGIN, why_no_domain
from volcano_py.framework.state.domain_sums import DomainSums
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.framework.state.sub_groups import OWN
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus, members
from volcano_py.model.sub_groups import TierLimit

_PLACEMENTS_KEPT: Final = 16  # domains whose rankings are kept
_HOMES_BESIDE: Final = 64  # domains of sub-groups without tasks that are remembered for one job
_COMPARED: Final = 4  # domains with a solution for a job with sub-groups that are compared
_ON_NODES: Final = members((*ALLOCATED_STATUSES, TaskStatus.PIPELINED))


def _for_good(rejection: Rejection) -> bool:
    """Say whether a rejection holds wherever tasks are placed: their queue may not hold them."""
    return rejection.blocked is not None and rejection.blocked.plugin != PLUGIN


class TopologyPlacement:
    """Places the jobs of a session that have topologies or sub-groups."""

    def __init__(self, state: State, hooks: Hooks, placement: Placement, loop: TaskLoop) -> None:
        self._state = state
        self._hooks = hooks
        self._placement = placement
        self._loop = loop
        rules = state.jobs.rules
        self.concerned = frozenset([*rules.with_sub_groups.tolist(), *rules.with_topology.tolist()])
        """The rows of the jobs that have sub-groups or topologies."""
        self._tier_limits = hooks.points(TierLimits, "most_domains")
        self._limits = bool(self._tier_limits)
        self._pieces = Pieces(state, hooks, enforced=self._limits)
        self._domain_orders = hooks.points(DomainOrder, "domain_order")
        self._near_orders = hooks.points(NearOrder, "near_order")
        self._placements: OrderedDict[int, Placement] = OrderedDict()
        self._room = DomainRoom(state, placement)
        self._sums = DomainSums(state)

    def applies(self, job: JobInfo) -> bool:
        """Say whether a job is placed here: it has sub-groups, or a topology that is in effect."""
        if job.row not in self.concerned:  # asked for every job
            return False
        record = job.record
        if record.sub_group_policies:
            return True
        topology = record.network_topology
        if topology is None or not self._limits:
            return False
        return topology.hard or (topology.soft and bool(self._state.facts.hyper_nodes.by_name))

    # Jobs

    def place(
        self,
        statement: Statement,
        queue: QueueInfo,
        job: JobInfo,
        tasks: Rows,
        within: int | None = None,
        *,
        once_free: bool = False,
    ) -> tuple[Rows, bool]:
        """Place tasks of a job until it is ready; return those that are still to be tried, and whether it is ready.

        ``within`` is a domain that all of them must be in. If the job gets nothing, the reasons are recorded. With
        ``once_free``, a job is ready when it has been promised what it lacks.
        """
        if not len(tasks):
            return tasks, self._hooks.missing(job) == 0
        outcome = self._state.outcome
        known = outcome.rejections.get(job.row, {})
        # What a queue may not hold is not tried again, except by another sub-group, which may be smaller.
        for_good = {} if self._state.sub_groups(job.row) else {row: one for row, one in known.items() if _for_good(one)}
        attempt = Attempt(statement, queue, job, for_good, Notes(), once_free)
        within = self._state.domains.top if within is None else within
        pieces, rest = self._pieces.now(job, tasks)
        if pieces[0].group is None:
            placed = self._place_piece(attempt, pieces[0], within) is not None
        else:
            placed = self._place_job(attempt, pieces, within)
        ready = self._hooks.missing(job) == 0
        found = {shape: one for shape, one in outcome.rejections.get(job.row, {}).items() if _for_good(one)}
        outcome.rejections[job.row] = {**known, **found}
        if placed and ready:
            self._remember(job, pieces)
        elif not placed and not found:
            self._explain(job, pieces, attempt.notes)
        return np.concatenate([*(piece.waiting for piece in pieces), rest]), ready

    def _place_job(self, attempt: Attempt, pieces: list[Piece], within: int) -> bool:
        """Place the sub-groups of a job in the best domain of the lowest tier that has a solution.

        If room must still become free everywhere, the best domain of the lowest tier that promises a solution is used.
        """
        job = attempt.job
        as_one = self._pieces.whole(job, np.concatenate([piece.asked for piece in pieces]))
        promised: tuple[int, list[Piece]] | None = None
        for domains in self._domains(as_one, max(1, self._hooks.missing(job)), within):
            solutions: list[tuple[float, int, list[Piece]]] = []
            for domain in domains:
                checkpoint = attempt.statement.checkpoint()
                found = self._in_some_order(attempt, pieces, domain)
                if found is not None and found[1] and len(domains) == 1:
                    return True
                attempt.statement.rollback(checkpoint)
                if found is not None and found[1]:
                    solutions.append((found[0], domain, found[2]))
                elif found is not None and promised is None:
                    promised = domain, found[2]
                if len(solutions) == _COMPARED:
                    break
            if solutions:
                _, domain, order = max(solutions, key=lambda one: one[0])  # the first among equals
                return self._place_pieces(attempt, order, domain) is not None
        if promised is not None:
            return self._place_pieces(attempt, promised[1], promised[0]) is not None
        for piece in pieces:
            piece.waiting = piece.waiting[:0]
        return False

    def _in_some_order(
        self, attempt: Attempt, pieces: list[Piece], domain: int
    ) -> tuple[float, bool, list[Piece]] | None:
        """Place sub-groups in a domain; if some find no room there, try once more with these first."""
        checkpoint = attempt.statement.checkpoint()
        found = self._place_pieces(attempt, pieces, domain)
        if found is not None:
            return *found, pieces
        failed = [piece for piece in pieces if not len(piece.waiting) and piece.goal.missing()]
        if not failed or len(failed) == len(pieces):
            return None
        attempt.statement.rollback(checkpoint)
        order = [*failed, *(piece for piece in pieces if piece not in failed)]
        found = self._place_pieces(attempt, order, domain)
        return None if found is None else (*found, order)

    def _place_pieces(self, attempt: Attempt, pieces: list[Piece], domain: int) -> tuple[float, bool] | None:
        """Place sub-groups in a domain, turn by turn, until the job is ready.

        Return the sum of their scores, and whether the job is ready. None: it has not even been promised what it lacks.
        """
        total, placed, ready = 0.0, False, False
        turns = deque(pieces)
        for piece in pieces:
            piece.waiting = piece.asked
        while turns and not ready:
            piece = turns.popleft()
            score = self._place_piece(attempt, piece, domain)
            if score is not None:
                total, placed = total + score, True
                if len(piece.waiting):
                    turns.append(piece)  # it has what it needs, but the job may need more of its tasks
            ready = self._ready(attempt)
        if not placed or not (ready or self._hooks.job_pipelined(attempt.job)):
            return None
        return total, ready

    def _ready(self, attempt: Attempt) -> bool:
        if not self._hooks.missing(attempt.job):
            return True
        return attempt.once_free and self._hooks.job_pipelined(attempt.job)

    # Parts

    def _place_piece(self, attempt: Attempt, piece: Piece, within: int) -> float | None:
        """Place a part in the first domain below ``within`` that takes it; return the score of that domain.

        A domain where it must wait for room is used only if no other takes it. What is still to be tried stays in the
        piece; if no domain takes it, that is nothing.
        """
        statement = attempt.statement
        more = piece.goal.missing() == 0  # it is complete; any more tasks are welcome
        goal = JobGoal(self._hooks, attempt.job) if more else piece.goal
        promised: tuple[int, float] | None = None
        for domains in self._domains(piece, 1 if more else max(1, goal.missing()), within):
            for domain in domains:
                checkpoint = statement.checkpoint()
                left, reached = self._run(attempt, piece, goal, domain)
                grown = statement.checkpoint().operations > checkpoint.operations
                idle = attempt.once_free or not statement.promises_since(checkpoint)
                if grown and (idle or not more) and (reached or more or (attempt.once_free and self._promised(piece))):
                    piece.waiting = left
                    return float(piece.scores[domain])
                if grown and promised is None and (more or self._promised(piece)):
                    promised = domain, float(piece.scores[domain])
                statement.rollback(checkpoint)
        if promised is None:
            if attempt.notes.failed is None and not more and within == self._state.domains.top:
                attempt.notes.failed = piece, self._room.of(piece.waiting)
            piece.waiting = piece.waiting[:0]
            return None
        piece.waiting, _ = self._run(attempt, piece, goal, promised[0])
        return promised[1]

    def _run(self, attempt: Attempt, piece: Piece, goal: Goal, domain: int) -> tuple[Rows, bool]:
        self._state.outcome.rejections[attempt.job.row] = dict(attempt.before)
        placer = self._placer(piece.part, domain)
        found = self._loop.run(attempt.statement, attempt.queue, attempt.job, piece.waiting, goal, placer)
        attempt.notes.add(self._state.outcome.rejections[attempt.job.row].values())
        return found

    def _promised(self, piece: Piece) -> bool:
        """Say whether a part has what it needs once promised resources are free."""
        if piece.group is None:
            return self._hooks.job_pipelined(piece.part.job)
        groups = self._state.sub_groups(piece.part.job.row)
        return groups is not None and not groups.missing(promised=True)[piece.group]

    def _placer(self, part: Part, domain: int) -> NearPlacement:
        counts = self._by_leaf(part)
        orders = self._near_orders if self._limits else ()
        begun = self._state.domains.common(np.flatnonzero(counts).tolist())
        return NearPlacement(self._state, self.placement_in(domain), orders, part, begun, counts)

    def placement_in(self, domain: int) -> Placement:
        """Return the placement on the nodes of a domain."""
        if domain == self._state.domains.top:
            return self._placement
        found = self._placements.get(domain)
        if found is None:
            found = self._placements[domain] = self._placement.within(
                self._state.domains.mask(self._state.domains.names[domain])
            )
            if len(self._placements) > _PLACEMENTS_KEPT:
                self._placements.popitem(last=False)
        self._placements.move_to_end(domain)
        return found

    def _nodes_of(self, tasks: Rows) -> Rows:
        """Return the nodes of those of these tasks that have one, one entry per task."""
        columns = self._state.tasks
        nodes = columns.node[tasks[_ON_NODES[columns.status[tasks]]]]
        return nodes[nodes >= 0].astype(np.intp)

    def _by_leaf(self, part: Part) -> Ints:
        domains = self._state.domains
        return np.bincount(domains.innermost[self._nodes_of(part.tasks)], minlength=len(domains))

    def _begun(self, part: Part) -> int | None:
        return self._state.domains.around(self._nodes_of(part.tasks))

    # Domains

    def _domains(self, piece: Piece, least: int, within: int) -> Iterator[list[int]]:
        """Yield groups of domains in the order in which they are tried; within a group the best domain is first.

        A domain must have room for all waiting tasks of the piece, or else for the least that is worth trying.
        """
        limit = piece.limit
        if limit is None:
            piece.scores = np.zeros(len(self._state.domains))  # the domain is not chosen
            yield [within]
            return
        waiting = piece.waiting
        beside = self._best_effort(piece, waiting)
        tries = [(self._room.of(np.concatenate((waiting, beside))), len(waiting) + len(beside))] if len(beside) else []
        enough = self._enough(waiting)
        room = self._room.of(waiting)
        tries += [(room, wanted) for wanted in dict.fromkeys((len(waiting), min(least, len(waiting))))]
        tried: set[int] = set()
        for free, wanted in tries:
            for group in self._in_reach(piece.part, within, limit):
                group = group[enough[group]] if wanted >= len(waiting) else group
                fitting = [one for one in group.tolist() if free[one] >= wanted and one not in tried]
                tried.update(fitting)
                if fitting:
                    yield self._best_first(piece, fitting)

    def _enough(self, tasks: Rows) -> Bools:
        """Return which domains have room for the sum of what tasks ask for, now or once pods have ended."""
        nodes, domains = self._state.nodes, self._state.domains
        available = (nodes.idle, nodes.future_idle) if self._state.looks_ahead else (nodes.idle,)
        return has_room(self._pieces.request(tasks), [domains.sums(np.maximum(amounts, 0.0)) for amounts in available])

    def _best_effort(self, piece: Piece, waiting: Rows) -> Rows:
        """Return the pending tasks of a part that request nothing and need room beside these tasks."""
        columns, tasks = self._state.tasks, piece.part.tasks
        chosen = (columns.status[tasks] == TaskStatus.PENDING) & self._state.classes.best_effort[columns.shape[tasks]]
        return np.setdiff1d(tasks[chosen], waiting)

    def _in_reach(self, part: Part, within: int, limit: TierLimit) -> Iterator[Rows]:
        domains = self._state.domains
        nodes = self._nodes_of(part.tasks)
        if len(nodes):
            for one in domain_search.around(domains, np.unique(nodes), within, limit):
                yield np.array([one])
            return
        groups = domain_search.by_tier(domains, within, limit)
        home = domains.number.get(self._state.memory.domains.get(part.job.key, {}).get(part.name, ""))
        if home is not None and any(home in group for group in groups):  # where it was before all its tasks ended
            yield np.array([home])
        yield from groups

    def _best_first(self, piece: Piece, domains: Sequence[int]) -> list[int]:
        piece.scores = scores = self._scores(piece.part)
        if len(domains) == 1:
            return list(domains)
        room, names = self._room.most(piece.waiting), self._state.domains.names
        return sorted(domains, key=lambda one: (-scores[one], room[one], names[one]))

    def _scores(self, part: Part) -> Floats:
        """Return the score of each domain for a part, shape (n_domains,)."""
        domains, n = self._state.domains, len(self._state.nodes)
        view = DomainView(domains, self._sums, np.bincount(self._nodes_of(part.tasks), minlength=n))
        return combine.total(self._domain_orders, len(domains), part, view)

    def place_idle(self, statement: Statement, job: JobInfo, shape_id: int, tasks: Rows) -> int:
        """Place as many tasks of a job that request nothing as its limits allow; return how many found a node."""
        done = 0
        for piece in self._pieces.all(job, tasks):  # a Python loop over the sub-groups of one job
            whole = self._pieces.whole(job, tasks)
            outer = (domain for group in self._domains(whole, 1, self._state.domains.top) for domain in group)
            inner = (domain for one in outer for group in self._domains(piece, 1, one) for domain in group)
            for domain in inner:  # a Python loop over domains, until one of them takes the tasks
                found = self.placement_in(domain).place_idle(statement, job.row, shape_id, piece.waiting)
                done += found
                if found:
                    break
        return done

    # For those who evict

    def limited(self, job: JobInfo) -> bool:
        """Say whether a job, or some of its sub-groups, must stay below a tier."""
        return self.applies(job) and bool(self._pieces.hard_limits(job))

    def domains_to_empty(self, job: JobInfo, tasks: Rows, most: int) -> list[int]:
        """Return the domains in which others may be evicted for a job, at most ``most``, the first to try first."""
        domains, limit = self._state.domains, self._pieces.limits_of(job)[0]
        if limit is None or limit.soft:
            return [domains.top]
        nodes = self._nodes_of(self._state.rows_of_job(job.row))
        if len(nodes):
            return domain_search.around(domains, np.unique(nodes), domains.top, limit)[::-1][:most]
        room, now = self._room.if_empty(tasks), self._room.most(tasks)
        needed = max(1, self._hooks.missing(job))
        least = self._pieces.request(tasks if needed >= len(tasks) else tasks[:0])
        large_enough = (room >= needed) & has_room(least, (self._sums.allocatable,))
        found: list[int] = []
        most_of_tier = min((int(point()) for point in self._tier_limits), default=0)
        for group in reversed(domain_search.by_tier(domains, domains.top, limit)):
            large = group[large_enough[group]].tolist()
            found += sorted(large, key=lambda one: (-now[one], domains.names[one]))[:most_of_tier]
        return found[:most]

    def place_once_free(self, queue: QueueInfo, job: JobInfo, within: int, statement: Statement, tasks: Rows) -> bool:
        """Place tasks of a job in a domain for a plan; say whether it has its minimum once what is promised is free."""
        outcome = self._state.outcome
        rejections = outcome.rejections.pop(job.row, {})
        homes = {key: dict(parts) for key, parts in outcome.domains.items()}
        before = statement.checkpoint().operations
        try:
            _, ready = self.place(statement, queue, job, tasks, within, once_free=True)
        finally:
            outcome.rejections[job.row], outcome.domains = rejections, homes
        grown = statement.checkpoint().operations > before
        return grown and (ready or self._hooks.job_pipelined(job))

    # Afterwards

    def not_enforced(self, job: JobInfo) -> str:
        """Return why a topology of a job that is not ready has no effect though it is hard, "" if it has."""
        record = job.record
        if job.row not in self.concerned or not self._hooks.missing(job):
            return ""
        if not self._limits:
            written = (record.network_topology, *(policy.topology for policy in record.sub_group_policies))
            hard = any(topology is not None and topology.hard for topology in written)
            return (
                "the network topology is not enforced: no plugin asks for it (network-topology-aware)" if hard else ""
            )
        limit, limits = self._pieces.limits_of(job)
        if not self._state.facts.hyper_nodes.by_name and self._pieces.hard_limits(job):
            return "there are no HyperNodes: the whole cluster counts as one domain"
        return next((one.problem for one in (limit, *limits) if one is not None and one.problem), "")

    def holds(self, job: JobInfo) -> bool:
        """Say whether all parts of a job that have tasks on nodes are within their limits."""
        groups, domains = self._state.sub_groups(job.row), self._state.domains
        job_limit, limits = self._pieces.limits_of(job)
        rows = self._state.rows_of_job(job.row)
        parts = [(rows, job_limit)]
        if groups is not None:
            parts += [
                (groups.members(group), limits[policy])
                for group, policy in enumerate(groups.policy.tolist())
                if policy != OWN
            ]
        for tasks, limit in parts:
            around = None if limit is None else domains.around(self._nodes_of(tasks))
            if limit is not None and around is not None and domains.tier_of[around] > limit.tier:
                return False
        return True

    def _remember(self, job: JobInfo, pieces: Sequence[Piece]) -> None:
        names = self._state.domains.names
        homes = self._state.outcome.domains.setdefault(job.key, dict(self._state.memory.domains.get(job.key, {})))
        for piece in pieces:
            begun = self._begun(piece.part) if piece.limit is not None else None
            if begun is not None:
                homes.pop(piece.part.name, None)
                homes[piece.part.name] = names[begun]
        groups = self._state.sub_groups(job.row)
        most = _HOMES_BESIDE + (1 if groups is None else len(groups))
        for name in list(homes)[: max(len(homes) - most, 0)]:  # those of sub-groups that are long gone
            del homes[name]

    def _explain(self, job: JobInfo, pieces: Sequence[Piece], notes: Notes) -> None:
        """Record why the tasks of some parts of a job got no domain."""
        tasks = np.concatenate([piece.asked for piece in pieces])
        shapes = dict.fromkeys(self._state.tasks.shape[tasks].tolist())
        plain = next((self._placement.rejection(shape_id) for shape_id in shapes), None)
        rejections = self._state.outcome.rejections[job.row]
        if not self._pieces.hard_limits(job):
            if plain is not None:
                rejections |= dict.fromkeys(shapes, plain)
            return
        limit, domains = self._pieces.limits_of(job)[0], self._state.domains
        if limit is None or limit.soft or not self._hooks.missing(job):
            reason = self._why_no_sub_group(pieces, plain, notes)
        else:
            needed, why = self._hooks.missing(job), "filters refuse some of its nodes" if notes.filtered else ""
            why = "each sub-group whole and within its limit" if pieces[0].group is not None else why
            reason = why_no_domain(domains, self._room.of(tasks), needed, limit.tier, plain, why=why)
        rejections |= dict.fromkeys(shapes, Rejection(len(self._state.nodes), blocked=reason))

    def _why_no_sub_group(self, pieces: Sequence[Piece], plain: Rejection | None, notes: Notes) -> Reason:
        """Return why the first part with a limit that has too little room waits, else the first with a limit.

        A part that no domain took has the room that the parts before it have left.
        """
        domains, top = self._state.domains, self._state.facts.hyper_nodes.top_tier
        why = "filters refuse some of its nodes" if notes.filtered else ""
        reasons: list[tuple[int, Reason]] = []
        for piece in pieces:  # a Python loop over the sub-groups of one job
            limit = None if piece.limit is None or piece.limit.soft else piece.limit.tier
            room, needed = self._room.of(piece.asked), max(1, piece.goal.missing())
            failed = notes.failed is not None and notes.failed[0] is piece
            if notes.failed is not None and failed:
                room = notes.failed[1]
            highest = top if limit is None else limit
            fits = bool((room[domains.tier_of <= highest] >= needed).any())
            who = "" if piece.group is None else f"sub-group {piece.part.name}: "
            reason = why_no_domain(domains, room, needed, highest, plain, who, why=why)
            reasons.append((4 * (limit is None) + 2 * fits + (not failed), reason))
        return min(reasons, key=lambda one: one[0])[1]
