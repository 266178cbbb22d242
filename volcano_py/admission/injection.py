"""Writes the CA bundle that API servers trust into the webhook configurations; only the leader does this.

The configurations are watched: whoever applies them again without a bundle gets it back. A process outside of the
cluster also writes its address.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import structlog

from volcano_py.admission.paths import WEBHOOKS
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from volcano_py.runtime.clock import Clock
from volcano_py.writing.throttled_log import ThrottledLog

log = structlog.get_logger()

_WRITE_TIMEOUT_S: Final = 10.0
_LONGEST_WAIT_S: Final = 60.0
"""The longest that the API server, or a proxy before it, can ask to wait, as for all other writes."""
REPEAT_S: Final = 60.0
"""Writes are tried again every second; a failure that lasts is logged as often as this."""


class Configuration(Wire, frozen=True):
    """A webhook configuration of either kind."""

    metadata: ObjectMeta
    webhooks: list[dict[str, Any]] | None = None


def resource_for(path: str) -> Resource:
    """Return the kind of configuration that a path has."""
    return MUTATING_WEBHOOKS if WEBHOOKS[path].mutates else VALIDATING_WEBHOOKS


class ConfigurationView:
    """The configurations of one kind as the watch shows them."""

    def __init__(self, on_change: Any = lambda: None) -> None:
        self.by_name: dict[str, Configuration] = {}
        self._on_change = on_change

    def on_events(self, events: list[Event[Configuration]]) -> None:
        """Apply changes in order."""
        for event in events:
            self.by_name.pop(event.key, None)
            if event.type is not EventType.DELETED and event.object is not None:
                self.by_name[event.key] = event.object
        self._on_change()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Do nothing: the reflector has reported it."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows."""


def changes(configuration: Configuration, authorities: bytes, url: str, path: str) -> list[dict[str, Any]]:
    """Return the JSON Patch that makes a configuration trust these authorities; empty if it does."""
    encoded = base64.b64encode(authorities).decode()
    patch: list[dict[str, Any]] = []
    for index, webhook in enumerate(configuration.webhooks or ()):
        client: Mapping[str, Any] = webhook.get("clientConfig") or {}
        wanted = {"url": url + path, "caBundle": encoded} if url else {**client, "caBundle": encoded}
        if client != wanted:
            patch.append({"op": "test", "path": f"/webhooks/{index}/name", "value": webhook.get("name")})
            patch.append({"op": "replace", "path": f"/webhooks/{index}/clientConfig", "value": wanted})
    if patch:
        version = configuration.metadata.resource_version
        patch.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version})
    return patch


def _blocks(pem: bytes) -> list[bytes]:
    """Return the certificates of a bundle, without what stands around them."""
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    return [b"".join(part.partition(end)[0].split()) for part in pem.split(begin)[1:]]


class Injector:
    """Keeps the bundle of the configurations of some paths up to date."""

    def __init__(
        self,
        client: ApiClient,
        paths: Mapping[str, str],
        views: Mapping[Resource, ConfigurationView],
        url: str,
        clock: Clock,
    ) -> None:
        self._client, self._paths, self._views, self._url = client, paths, views, url.rstrip("/")
        event = "a webhook configuration cannot be written; trying again"
        self._failures = ThrottledLog(event, clock, REPEAT_S, outage=client.outage)
        self._missing: frozenset[str] = frozenset()
        self._written: list[str] = []
        self._refused: dict[str, str] = {}  # version of each configuration that was refused last as outdated
        self._clock = clock
        self._not_before: dict[str, float] = {}  # monotonic time that the API server has asked to wait for, by name

    async def inject(self, authorities: bytes) -> bool:
        """Write the bundle where it is missing; return whether every configuration that exists has it."""
        complete, missing = True, []
        for name, path in self._paths.items():
            resource = resource_for(path)
            found = self._views[resource].by_name.get(name)
            if found is None:
                missing.append(name)
            elif patch := changes(found, authorities, self._url, path):
                waits = self._clock.monotonic() < self._not_before.get(name, 0.0)
                complete = not waits and await self._write(resource, name, patch) and complete
        if self._written:
            log.info("webhook configurations trust the certificate", names=self._written)
            self._written = []
        if not self._missing.issuperset(missing):
            log.warning("webhook configurations do not exist yet; their webhooks are not asked", names=missing)
        elif self._missing and not missing:
            log.info("all webhook configurations exist")
        self._missing = frozenset(missing)
        return complete

    def trusted(self, authorities: bytes) -> bool:
        """Say whether every configuration that exists has all of these authorities, as far as the watches show."""
        wanted = set(_blocks(authorities))
        return all(
            wanted <= set(_blocks(base64.b64decode(webhook.get("clientConfig", {}).get("caBundle") or "")))
            for name, path in self._paths.items()
            if (found := self._views[resource_for(path)].by_name.get(name)) is not None
            for webhook in found.webhooks or ()
        )

    async def _write(self, resource: Resource, name: str, patch: list[dict[str, Any]]) -> bool:
        view = self._views[resource]
        before = view.by_name[name]
        version = before.metadata.resource_version
        try:
            written = await self._client.patch(
                resource, name, patch, Configuration, kind=PatchType.JSON, timeout_s=_WRITE_TIMEOUT_S
            )
        except errors.ApiError as error:
            self._not_before[name] = self._clock.monotonic() + min(error.retry_after_s or 0.0, _LONGEST_WAIT_S)
            outdated = isinstance(error, errors.Conflict | errors.Invalid | errors.NotFound)
            if outdated and self._refused.get(name) != version:  # what is refused twice has not changed meanwhile
                self._refused[name] = version
                log.info("a webhook configuration has changed meanwhile; trying again", name=name, problem=str(error))
                return False
            self._failures.log(str(error.status), why=error, name=name, problem=str(error))
            return False
        if view.by_name.get(name) is before:  # the watch may have been faster, and may know of a later change
            view.by_name[name] = written
        self._written.append(name)
        return True
