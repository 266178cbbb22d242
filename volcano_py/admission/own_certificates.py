"""Certificates that the leader makes and keeps in a Secret; every replica serves what the Secret holds."""

import asyncio
from datetime import timedelta
from typing import Any, Final

import structlog

from volcano_py.admission.certificates import Held, Step, Unusable, next_step, renewal_time, settling, taken
from volcano_py.admission.injection import REPEAT_S, Injector
from volcano_py.admission.serving import ServedCertificate
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.resource import SECRETS
from volcano_py.runtime.clock import Clock
from volcano_py.writing.throttled_log import ThrottledLog

log = structlog.get_logger()

_RETRY_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
"""Until the next look at the certificates, because somebody may have corrected the clock."""
_WRITE_TIMEOUT_S: Final = 10.0


class SecretObject(Wire, frozen=True):
    """A Secret."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


class OwnCertificates:
    """The pair of the Secret; the handler of its watch."""

    def __init__(
        self,
        secret: tuple[str, str],
        names: tuple[str, ...],
        lifetime: timedelta,
        *,
        served: ServedCertificate,
        injector: Injector,
        client: ApiClient,
        clock: Clock,
    ) -> None:
        """Take namespace and name of the Secret, what a certificate is for and how long it lives."""
        self._namespace, self._name = secret
        self._names, self._lifetime = names, lifetime
        self._served, self._injector, self._client, self._clock = served, injector, client, clock
        self._held: Held | None = None  # the last usable state
        self._secret: SecretObject | None = None
        self._broken = False  # what the Secret holds now cannot be used
        self._trusted: tuple[bytes, float] | None = None  # a bundle, and since when every configuration has it
        self.changed = asyncio.Event()
        """Set when the leader may have something to do."""
        event = "the Secret of the certificate cannot be written; trying again"
        self._failures = ThrottledLog(event, clock, REPEAT_S, outage=client.outage)
        self._attempts = ThrottledLog("writing the certificate", clock, REPEAT_S, level="info")

    # The watch, on every replica

    def on_events(self, events: list[Event[SecretObject]]) -> None:
        """Serve what the Secret holds now."""
        for event in events:
            if event.key.rpartition("/")[2] == self._name:
                self._secret = None if event.type is EventType.DELETED else event.object
                self._take()
        self.changed.set()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Do nothing: the reflector has reported it."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows."""

    def _take(self) -> None:
        self._broken = False
        if self._secret is None:
            return
        try:
            held = Held.of(self._secret.data or {})
            self._served.serve(held.serving, held.authorities)
        except Unusable as error:
            self._broken = True
            log.warning(
                "the Secret of the certificate cannot be used",
                object=f"{self._namespace}/{self._name}",
                problem=str(error),
            )
        else:
            self._held = held

    # The leader

    async def lead(self) -> None:
        """Make, replace and inject certificates as time passes."""
        while True:
            self.changed.clear()
            try:
                wait_s = await self._step()
            except errors.ApiError as error:
                self._failures.log(
                    str(error.status), why=error, object=f"{self._namespace}/{self._name}", problem=str(error)
                )
                wait_s = _RETRY_S
            try:
                async with asyncio.timeout(wait_s):
                    await self.changed.wait()
            except TimeoutError:
                continue

    async def _step(self) -> float:
        """Do what is to be done now; return how many seconds later to look again."""
        held, now = self._held, self._clock.now()
        step = next_step(held, self._names, now, self._trusted_for())
        if step is not Step.KEEP or self._secret is None or self._broken:
            held = taken(step, held, self._names, now, self._lifetime) if step is not Step.KEEP else held
            assert held is not None
            self._attempts.log(step.value, step=step.value, object=f"{self._namespace}/{self._name}")
            await self._write(held)
        assert held is not None
        return await self._inject(held)

    async def _inject(self, held: Held) -> float:
        if not await self._injector.inject(held.authorities):
            self._trusted = None
            return _RETRY_S
        if self._trusted is None or self._trusted[0] != held.authorities:
            self._trusted = (held.authorities, self._clock.monotonic())
        if held.following is not None:
            return max(0.05, settling(held.serving).total_seconds() / 4)
        left = renewal_time(held.serving.leaf) - self._clock.now()
        return min(max(0.05, left.total_seconds()), _LONGEST_WAIT_S)

    def _trusted_for(self) -> timedelta | None:
        if self._held is None or self._trusted is None or self._trusted[0] != self._held.authorities:
            return None
        return timedelta(seconds=self._clock.monotonic() - self._trusted[1])

    async def _write(self, held: Held) -> None:
        """Write the Secret, unless another process has changed it meanwhile."""
        before = self._secret
        metadata: dict[str, Any] = {"name": self._name}
        data = held.data()
        if before is None:
            metadata["namespace"] = self._namespace
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata,
                "type": "Opaque",
                "data": {key: value for key, value in data.items() if value is not None},
            }
            how: dict[str, Any] = {"namespace": self._namespace, "timeout_s": _WRITE_TIMEOUT_S}
            written = await self._client.create(SECRETS, body, SecretObject, **how)
        else:
            metadata["resourceVersion"] = before.metadata.resource_version
            written = await self._client.patch(
                SECRETS,
                self._name,
                {"metadata": metadata, "data": data},
                SecretObject,
                namespace=self._namespace,
                timeout_s=_WRITE_TIMEOUT_S,
            )
        if self._secret is before:  # the watch may have been faster
            self._secret = written
            self._take()
