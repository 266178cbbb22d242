"""Leader election over a Lease, by the rules of client-go, so that a Go program of the same lease name and this exclude
each other.

    waiting ── lease free, released, or unchanged for its duration ──▶ leading ── not renewed in time, or taken ──▶ lost
                                                                          └────── asked to end ──▶ released

Whether somebody else's lease has run out is judged by our own monotonic clock, from the moment we saw the record
change: the clocks of two machines need not agree. Every write carries the resourceVersion that was read, so that of two
who try at once one gets a conflict. Two rules are stricter than client-go's: a lease that another holder has had
meanwhile is lost at once (client-go may take it back within the renew deadline, although the other has acted), and
whoever waits looks again at the very moment the lease runs out.

A leader that is killed is followed within the duration of the lease and the pause between two looks, which is up to 2.2
retry periods; one that ends in order gives the lease up and is followed at the next look.
"""

import random
import socket
import uuid
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

import structlog

from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.lease import JITTER, LeaseOptions, LeaseRecord, micro_time
from volcano_py.kube.resource import LEASES
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_REPEAT_S: Final = 60.0  # after which a problem that lasts is told again


def new_identity() -> str:
    """Return a name for this process: the host's, and a number that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class _Outcome(Enum):
    HELD = auto()
    FAILED = auto()  # nobody knows, or somebody else's for now; try again
    TAKEN = auto()  # it was ours, and now another holder's


class LeaderElector:
    """One candidate: `acquire`, then `renew` until it returns, or `release`."""

    def __init__(
        self,
        client: ApiClient,
        options: LeaseOptions,
        *,
        clock: Clock,
        rng: random.Random,
        identity: str = "",
        on_leader: Callable[[str], None] = lambda holder: None,
    ) -> None:
        if problem := options.problem():
            raise ValueError(problem)
        self._client = client
        self._options = options
        self._clock = clock
        self._rng = rng
        self._on_leader = on_leader
        self.identity = identity or new_identity()
        self.problem = ""
        """Why the lease could not be read or written the last time, "" if it could."""
        self._lease: dict[str, Any] | None = None  # as it was read or written last
        self._seen = LeaseRecord()
        self._seen_at = float("-inf")  # when the record changed, as far as we saw
        self._kept_at = float("-inf")  # when the last request that got or kept the lease was sent
        self._ended = False
        self._told_at = float("-inf")

    @property
    def holder(self) -> str:
        """Who holds the lease as far as we know, "" for nobody."""
        return self._seen.holder

    @property
    def uid(self) -> str:
        """The uid of the Lease object, "" while it is not known."""
        return str(self._lease["metadata"].get("uid", "")) if self._lease else ""

    def holds(self) -> bool:
        """Say whether the lease is ours beyond doubt: nobody else can have taken it yet.

        Counted from before the last successful write was sent, so that it ends before anybody else's patience does,
        even when this process was stopped for a while and has not noticed.
        """
        ours = not self._ended and self._seen.holder == self.identity
        return ours and self._clock.monotonic() < self._kept_at + self._options.seconds

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        log.info("waiting for the lease", lease=str(self._options), identity=self.identity)
        while await self._attempt(self._clock.monotonic() + self._options.renew_deadline_s) is not _Outcome.HELD:
            await self._clock.sleep(self._pause())
        log.info(
            "the lease is ours", lease=str(self._options), identity=self.identity, transitions=self._seen.transitions
        )

    async def renew(self) -> str:
        """Keep the lease; return why it is lost when it is."""
        options = self._options
        while True:
            await self._clock.sleep(options.retry_period_s)
            deadline = self._clock.monotonic() + options.renew_deadline_s
            while (outcome := await self._attempt(deadline, renewing=True)) is not _Outcome.HELD:
                if outcome is _Outcome.TAKEN:
                    self._ended = True
                    return f"lease {self._options} is held by {self.holder or 'nobody'} now"
                left_s = deadline - self._clock.monotonic()
                if left_s > 0:
                    await self._clock.sleep(min(left_s, options.retry_period_s))
                if self._clock.monotonic() >= deadline:
                    self._ended = True
                    return (
                        f"lease {self._options} was not renewed within {options.renew_deadline_s:g} s: {self.problem}"
                    )

    async def release(self) -> bool:
        """Give the lease up so that the next candidate need not wait; say whether that was done.

        Only for when nothing is on its way any more: the next leader may begin at once.
        """
        self._ended = True
        if self._lease is None or self._seen.holder != self.identity:
            return False
        timeout_s = self._options.renew_deadline_s / 2
        try:
            try:
                await self._write(self._free(), timeout_s)
            except errors.Conflict:  # a renewal that was broken off may have taken effect
                self._observe(await self._read(timeout_s), self._clock.monotonic())
                if self._seen.holder != self.identity:
                    return False
                await self._write(self._free(), timeout_s)
        except errors.ApiError as error:
            log.warning("the lease could not be released; others wait until it runs out", error=str(error))
            return False
        log.info("lease released", lease=str(self._options))
        return True

    # One attempt

    async def _attempt(self, deadline: float, renewing: bool = False) -> _Outcome:
        try:
            outcome = await self._try(deadline, renewing)
        except errors.ApiError as error:
            self._tell(error)
            return _Outcome.FAILED
        self.problem = ""
        return outcome

    async def _try(self, deadline: float, renewing: bool) -> _Outcome:
        if self._lease is not None and self._seen.holder == self.identity and self._valid():
            try:
                return await self._keep(self._lease, deadline)
            except errors.ApiError as error:
                log.debug("lease not renewed at once; it is read again", error=str(error))
        try:
            lease = await self._read(self._time_left(deadline))
        except errors.NotFound:
            return await self._create(deadline)
        self._observe(lease, self._clock.monotonic())
        if self._seen.holder == self.identity:
            return await self._keep(lease, deadline)
        if renewing:
            return _Outcome.TAKEN
        if self._seen.holder and self._valid():
            return _Outcome.FAILED
        sent_at = self._clock.monotonic()
        record = self._mine(self._seen.transitions + 1)
        self._kept(await self._write(record, self._time_left(deadline)), sent_at)
        return _Outcome.HELD

    async def _keep(self, lease: dict[str, Any], deadline: float) -> _Outcome:
        """Renew what is ours; acquireTime and the number of transitions stay."""
        sent_at = self._clock.monotonic()
        self._lease = lease
        record = self._mine(self._seen.transitions)._replace(acquired=self._seen.acquired)
        self._kept(await self._write(record, self._time_left(deadline)), sent_at)
        return _Outcome.HELD

    async def _create(self, deadline: float) -> _Outcome:
        sent_at = self._clock.monotonic()
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._options.name, "namespace": self._options.namespace},
        }
        made = await self._client.create(
            LEASES,
            self._mine(0).into(body),
            dict[str, Any],
            namespace=self._options.namespace,
            timeout_s=self._time_left(deadline),
        )
        self._kept(made, sent_at)
        return _Outcome.HELD

    async def _read(self, timeout_s: float) -> dict[str, Any]:
        return await self._client.get(
            LEASES, self._options.name, dict[str, Any], namespace=self._options.namespace, timeout_s=timeout_s
        )

    async def _write(self, record: LeaseRecord, timeout_s: float) -> dict[str, Any]:
        """Write the record into the lease that was read last; what else its spec has stays."""
        assert self._lease is not None
        return await self._client.replace(
            LEASES,
            self._options.name,
            record.into(self._lease),
            dict[str, Any],
            namespace=self._options.namespace,
            timeout_s=timeout_s,
        )

    # What is known

    def _observe(self, lease: dict[str, Any], at: float) -> None:
        record = LeaseRecord.of(lease)
        self._lease = lease
        if record == self._seen:
            return
        holder, self._seen, self._seen_at = self._seen.holder, record, at
        if record.holder != holder and record.holder:
            log.info("leader", lease=str(self._options), holder=record.holder)
            self._on_leader(record.holder)

    def _kept(self, lease: dict[str, Any], sent_at: float) -> None:
        self._kept_at = sent_at
        self._observe(lease, self._clock.monotonic())
        self._seen_at = self._clock.monotonic()

    def _valid(self) -> bool:
        """Say whether the record that we saw last has not run out."""
        return self._clock.monotonic() < self._seen_at + self._seen.duration_s

    def _mine(self, transitions: int) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord(self.identity, self._options.seconds, now, now, transitions)

    def _free(self) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord("", 1, now, now, self._seen.transitions)

    def _time_left(self, deadline: float) -> float:
        """Return the timeout of a request; half the renew deadline, so that one lost answer does not cost the lease."""
        left_s = deadline - self._clock.monotonic()
        if left_s <= 0:
            path = LEASES.item(self._options.name, self._options.namespace)
            raise errors.Timeout("update", path, f"no success within {self._options.renew_deadline_s:g} s")
        return min(left_s, self._options.renew_deadline_s / 2)

    def _pause(self) -> float:
        """Return how long to wait before the next look: with jitter, but not beyond the end of another's lease."""
        pause_s = self._options.retry_period_s * (1 + JITTER * self._rng.random())
        left_s = self._seen_at + self._seen.duration_s - self._clock.monotonic()
        return min(pause_s, left_s) if self._seen.holder and left_s > 0 else pause_s

    def _tell(self, error: errors.ApiError) -> None:
        """Log a problem when it is new, and now and then while it lasts; a conflict is nobody's problem."""
        if isinstance(error, errors.Conflict | errors.AlreadyExists):
            log.debug("somebody else wrote the lease first", error=str(error))
            self.problem = str(error)
            return
        text = _with_remedy(error, self._options)
        now = self._clock.monotonic()
        if text != self.problem or now - self._told_at >= _REPEAT_S:
            log.warning("the lease cannot be read or written; trying again", lease=str(self._options), problem=text)
            self._told_at = now
        self.problem = text


def _with_remedy(error: errors.ApiError, options: LeaseOptions) -> str:
    if isinstance(error, errors.NotFound):
        return (
            f"{error}; create the namespace {options.namespace}, or choose another with "
            "--leader-elect-resource-namespace; for a single scheduler --leader-elect=false does without"
        )
    if isinstance(error, errors.Forbidden):
        return (
            f"{error}; this account needs get, create and update on leases.coordination.k8s.io in namespace "
            f"{options.namespace}; for a single scheduler --leader-elect=false does without"
        )
    return str(error)
