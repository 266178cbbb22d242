"""The ledger: binds or evictions that are assumed until the watch confirms them, each with a deadline.

No entry ends because time has passed. A late entry is reported, so that its pod can be read again, and reported again
if that brings no answer. Only knowledge about the pod ends an entry.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from volcano_py.ledger.states import TRANSITIONS, AssumedState, is_live
from volcano_py.model.decisions import Bind, Evict
from volcano_py.model.objects import JobKey, TaskRef


@dataclass(frozen=True, slots=True)
class Entry:
    """One assumed bind or eviction."""

    task: TaskRef
    node: str
    job: JobKey | None
    generation: int  # of the job, when it was assumed
    assumed_at: float
    state: AssumedState
    deadline: float
    revision: int | None = None  # of the cluster, when it was assumed; None if that does not matter


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an entry may stay in a state before its pod is read again, in seconds."""

    unsent_s: float = 120.0
    unconfirmed_s: float = 30.0

    def until(self, state: AssumedState, now: float) -> float:
        """Return the deadline of an entry that reaches this state now."""
        return now + (self.unsent_s if state is AssumedState.ASSUMED else self.unconfirmed_s)


@dataclass(slots=True)
class LedgerCounts:
    """Counts of a ledger's entries, for metrics."""

    assumed: int = 0
    confirmed: int = 0
    forgotten: int = 0
    overdue: int = 0  # times that a late entry was reported


class Ledger:
    """Assumed binds or evictions by pod uid; at most one entry per pod.

    Times are seconds of one monotonic clock, given by the caller. ``what`` names the entries in messages.
    """

    def __init__(self, patience: Patience | None = None, what: str = "bind") -> None:
        self._what = what
        self._patience = patience or Patience()
        self._entries: dict[str, Entry] = {}  # in the order in which they were assumed
        self.counts = LedgerCounts()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, uid: str) -> Entry | None:
        """Return the live entry of a pod."""
        return self._entries.get(uid)

    def assume(self, decision: Bind | Evict, generation: int, now: float, revision: int | None = None) -> Entry:
        """Add an entry for a decision; a second live entry for a pod is a bug of the caller."""
        task = decision.task
        live = self._entries.get(task.uid)
        if live is not None:
            what = self._what
            raise ValueError(f"pod {task} has a live {what} on node {live.node}: end that {what} before another")
        state = AssumedState.ASSUMED
        deadline = self._patience.until(state, now)
        entry = Entry(task, decision.node, decision.job, generation, now, state, deadline, revision)
        self._entries[task.uid] = entry
        self.counts.assumed += 1
        return entry

    def sent(self, uid: str, now: float) -> Entry | None:
        """Note that the request is on its way; a repeated call changes nothing."""
        entry = self._entries.get(uid)
        if entry is None or entry.state is not AssumedState.ASSUMED:
            return entry
        return self._advance(entry, AssumedState.SENT, now)

    def acknowledged(self, uid: str, now: float) -> Entry | None:
        """Note that the API server accepted it; None if the entry has already ended because the watch was faster."""
        entry = self._entries.get(uid)
        if entry is None or entry.state is AssumedState.ACKNOWLEDGED:
            return entry
        return self._advance(entry, AssumedState.ACKNOWLEDGED, now)

    def confirm(self, uid: str) -> Entry | None:
        """End an entry because the watch shows what was assumed; return its last state."""
        entry = self._end(uid, AssumedState.CONFIRMED)
        self.counts.confirmed += entry is not None
        return entry

    def forget(self, uid: str) -> Entry | None:
        """End an entry because it failed or something else happened; return its last state."""
        entry = self._end(uid, AssumedState.FORGOTTEN)
        self.counts.forgotten += entry is not None
        return entry

    def expired(self, now: float) -> list[Entry]:
        """Return the entries past their deadline, oldest first; each gets a new deadline and is then reported again."""
        late = [entry for entry in self._entries.values() if entry.deadline <= now]
        for entry in late:
            self._entries[entry.task.uid] = replace(entry, deadline=self._patience.until(entry.state, now))
        self.counts.overdue += len(late)
        return late

    def unchanged(self, entry: Entry) -> bool:
        """Say whether an entry is still there in the same state."""
        now = self._entries.get(entry.task.uid)
        return now is not None and (now.assumed_at, now.state) == (entry.assumed_at, entry.state)

    def oldest_age(self, now: float, prepared: Callable[[str], bool] = lambda _: True) -> float:
        """Return how long the oldest entry has been waiting, 0 without entries.

        ``prepared`` says for the uid of a pod whether its request may go out: before that, waiting is no bad sign.
        """
        oldest = next((entry for uid, entry in self._entries.items() if prepared(uid)), None)
        return 0.0 if oldest is None else now - oldest.assumed_at

    def validate(self) -> None:
        """Raise AssertionError if the ledger contradicts itself."""
        for uid, entry in self._entries.items():
            if entry.task.uid != uid:
                raise AssertionError(f"the entry of pod {entry.task} is kept under uid {uid}, not {entry.task.uid}")
            if not is_live(entry.state):
                raise AssertionError(
                    f"the {self._what} of pod {entry.task} is {entry.state.value} but still in the ledger"
                )
            if entry.deadline < entry.assumed_at:
                raise AssertionError(f"the {self._what} of pod {entry.task} was late before it was assumed")
        counts = self.counts
        if counts.assumed - counts.confirmed - counts.forgotten != len(self._entries):
            raise AssertionError(f"{counts} do not add up to {len(self._entries)} entries")

    def _advance(self, entry: Entry, state: AssumedState, now: float) -> Entry:
        self._check(entry, state)
        deadline = self._patience.until(state, now)
        # Written out, because dataclasses.replace takes three times as long and this runs twice per bind.
        later = Entry(
            entry.task, entry.node, entry.job, entry.generation, entry.assumed_at, state, deadline, entry.revision
        )
        self._entries[entry.task.uid] = later
        return later

    def _end(self, uid: str, state: AssumedState) -> Entry | None:
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._check(entry, state)
        return entry

    def _check(self, entry: Entry, state: AssumedState) -> None:
        if state not in TRANSITIONS[entry.state]:
            is_now = entry.state.value
            raise ValueError(f"the {self._what} of pod {entry.task} cannot become {state.value}: it is {is_now}")
