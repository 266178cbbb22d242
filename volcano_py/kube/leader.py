"""Leader election over a Lease, by the rules of client-go: it excludes a Go program with the same lease name.

    waiting ── lease free, released, or unchanged for its duration ──▶ leading ── not renewed in time, or taken ──▶ lost
                                                                          └────── asked to end ──▶ released

Our own monotonic clock decides whether another holder's lease has expired, counted from the moment we saw the record
change; the clocks of two machines need not agree. Every write carries the resourceVersion that was read, so that of two
writes at once one gets a conflict. Two rules are stricter than client-go's. A leader loses the lease at once if another
holder has had it meanwhile; client-go may take it back within the renew deadline, although the other one has acted. A
waiting candidate reads the lease again at the very moment it expires. One rule is milder: a leader that was suspended
during a renewal tries again, and client-go gives up.

After a leader is killed, the next one leads within the duration of the lease plus one pause, which is up to 2.2 retry
periods. A leader that ends in order releases the lease, and the next one leads at its next attempt.
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

_REPEAT_S: Final = 60.0  # after which a lasting problem is logged again


def new_identity(rng: random.Random) -> str:
    """Return a unique name for this process: the host's name and a random UUID."""
    return f"{socket.gethostname()}_{uuid.UUID(int=rng.getrandbits(128), version=4)}"


class _Outcome(Enum):
    HELD = auto()
    FAILED = auto()  # unknown, or held by another process for now; try again
    TAKEN = auto()  # it was ours, and another process has it now


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
        self.identity = identity or new_identity(rng)
        self.problem = ""
        """Why the last attempt to read or write the lease failed, "" if it succeeded."""
        self._lease: dict[str, Any] | None = None  # as it was read or written last
        self._seen = LeaseRecord()
        self._seen_at = float("-inf")  # when the record changed, as far as we saw
        self._renewed_at = float("-inf")  # when the last request that acquired or renewed the lease was sent
        self._ended = False
        self._logged_at = float("-inf")

    @property
    def holder(self) -> str:
        """The holder of the lease as far as we know, "" if it has none."""
        return self._seen.holder

    @property
    def uid(self) -> str:
        """The uid of the Lease object, "" while it is not known."""
        return str(self._lease["metadata"].get("uid", "")) if self._lease else ""

    def holds(self) -> bool:
        """Say whether the lease is certainly ours, because no other process can have taken it yet.

        The duration counts from before the last successful write was sent. It therefore ends before another candidate
        may take the lease, even if this process was stopped for a while without noticing.
        """
        ours = not self._ended and self._seen.holder == self.identity
        return ours and self._clock.monotonic() < self._renewed_at + self._options.seconds

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        log.info("waiting for the lease", lease=str(self._options), identity=self.identity)
        while await self._attempt(self._clock.monotonic() + self._options.renew_deadline_s) is not _Outcome.HELD:
            await self._clock.sleep(self._pause())
        log.info(
            "the lease is ours", lease=str(self._options), identity=self.identity, transitions=self._seen.transitions
        )

    async def renew(self) -> str:
        """Renew the lease until it is lost; return the reason.

        No wait here lasts beyond the renew deadline. If one does, the whole process was suspended: its attempts say
        nothing about the lease, and it gets a new deadline.
        """
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
                late_s = self._clock.monotonic() - deadline
                if late_s > options.retry_period_s:
                    log.info("this process was suspended; renewing the lease again", lease=str(options))
                    deadline += late_s + options.renew_deadline_s
                elif late_s >= 0:
                    self._ended = True
                    return (
                        f"lease {self._options} was not renewed within {options.renew_deadline_s:g} s: {self.problem}"
                    )

    async def release(self) -> bool:
        """Release the lease so that the next candidate need not wait; return whether that succeeded.

        Call this only when no request is under way any more, because the next leader may begin at once.
        """
        self._ended = True
        if self._lease is None or self._seen.holder != self.identity:
            return False
        timeout_s = self._options.renew_deadline_s / 2
        try:
            try:
                await self._write(self._free(), timeout_s)
            except errors.Conflict:  # a cancelled renewal may have taken effect
                self._observe(await self._read(timeout_s), self._clock.monotonic())
                if self._seen.holder != self.identity:
                    return False
                await self._write(self._free(), timeout_s)
        except errors.ApiError as error:
            log.warning("the lease could not be released; other candidates wait until it expires", error=str(error))
            return False
        log.info("lease released", lease=str(self._options))
        return True

    # One attempt

    async def _attempt(self, deadline: float, renewing: bool = False) -> _Outcome:
        try:
            outcome = await self._try(deadline, renewing)
        except errors.ApiError as error:
            self._log_problem(error)
            return _Outcome.FAILED
        self.problem = ""
        return outcome

    async def _try(self, deadline: float, renewing: bool) -> _Outcome:
        if self._lease is not None and self._seen.holder == self.identity and self._valid():
            try:
                return await self._keep(self._lease, deadline)
            except errors.ApiError as error:
                log.debug("the lease was not renewed; reading it again", error=str(error))
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
        self._note_held(await self._write(record, self._time_left(deadline)), sent_at)
        return _Outcome.HELD

    async def _keep(self, lease: dict[str, Any], deadline: float) -> _Outcome:
        """Renew our lease; acquireTime and the number of transitions stay."""
        sent_at = self._clock.monotonic()
        self._lease = lease
        record = self._mine(self._seen.transitions)._replace(acquired=self._seen.acquired)
        self._note_held(await self._write(record, self._time_left(deadline)), sent_at)
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
        self._note_held(made, sent_at)
        return _Outcome.HELD

    async def _read(self, timeout_s: float) -> dict[str, Any]:
        return await self._client.get(
            LEASES, self._options.name, dict[str, Any], namespace=self._options.namespace, timeout_s=timeout_s
        )

    async def _write(self, record: LeaseRecord, timeout_s: float) -> dict[str, Any]:
        """Write the record into the lease that was read last; the other fields of its spec stay."""
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
            log.info("the leader changed", lease=str(self._options), holder=record.holder)
            self._on_leader(record.holder)

    def _note_held(self, lease: dict[str, Any], sent_at: float) -> None:
        self._renewed_at = sent_at
        self._observe(lease, self._clock.monotonic())
        self._seen_at = self._clock.monotonic()

    def _valid(self) -> bool:
        """Say whether the record that we saw last has not expired."""
        return self._clock.monotonic() < self._seen_at + self._seen.duration_s

    def _mine(self, transitions: int) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord(self.identity, self._options.seconds, now, now, transitions)

    def _free(self) -> LeaseRecord:
        now = micro_time(self._clock.now())
        return LeaseRecord("", 1, now, now, self._seen.transitions)

    def _time_left(self, deadline: float) -> float:
        """Return the timeout of a request: at most half the renew deadline, so that one lost answer is survivable."""
        left_s = deadline - self._clock.monotonic()
        if left_s <= 0:
            path = LEASES.item(self._options.name, self._options.namespace)
            raise errors.Timeout("update", path, f"no success within {self._options.renew_deadline_s:g} s")
        return min(left_s, self._options.renew_deadline_s / 2)

    def _pause(self) -> float:
        """Return the pause before the next attempt: with jitter, but not beyond the expiry of the other's lease."""
        pause_s = self._options.retry_period_s * (1 + JITTER * self._rng.random())
        left_s = self._seen_at + self._seen.duration_s - self._clock.monotonic()
        return min(pause_s, left_s) if self._seen.holder and left_s > 0 else pause_s

    def _log_problem(self, error: errors.ApiError) -> None:
        """Log a problem when it is new, and again every minute while it lasts; a conflict is normal."""
        if isinstance(error, errors.Conflict | errors.AlreadyExists):
            log.debug("another process wrote the lease first", error=str(error))
            self.problem = str(error)
            return
        text = _with_remedy(error, self._options)
        now = self._clock.monotonic()
        event = "the lease cannot be read or written; trying again"
        due = text != self.problem or now - self._logged_at >= _REPEAT_S
        if due and not self._client.outage.withholds(event, error):
            log.warning(event, lease=str(self._options), problem=text)
            self._logged_at = now
        self.problem = text


def _with_remedy(error: errors.ApiError, options: LeaseOptions) -> str:
    if isinstance(error, errors.NotFound):
        return (
            f"{error}; create the namespace {options.namespace}, or choose another with "
            "--leader-elect-resource-namespace; a single replica needs no lease: start it with --leader-elect=false"
        )
    if isinstance(error, errors.Forbidden):
        return (
            f"{error}; this account needs get, create and update on leases.coordination.k8s.io in namespace "
            f"{options.namespace}; a single replica needs no lease: start it with --leader-elect=false"
        )
    return str(error)
