"""Whether API servers ask the webhooks about every change of a queue that ends what jobs may rely on."""

from collections.abc import Mapping
from typing import Any, Final

import structlog

from volcano_py.admission.injection import Configuration, ConfigurationView
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.api import keys
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

QUEUE_PATH: Final = "/queues/validate"
STATE_CHANGES: Final = (
    '(has(object.status) && has(object.status.state) ? object.status.state : "") != '
    '(has(oldObject.status) && has(oldObject.status.state) ? oldObject.status.state : "")'
)
"""The one match condition that a webhook for ``queues/status`` may have: controllers often write numbers there."""
_NEEDED: Final = (("queues", "CREATE"), ("queues", "UPDATE"), ("queues", "DELETE"), ("queues/status", "UPDATE"))
_COVERING: Final = {
    "queues": ("queues", "*", "*/*"),
    "queues/status": ("queues/status", "queues/*", "*/status", "*/*"),
}
"""How rules of a configuration may name a resource."""
_SETTLED_S: Final = 1.0  # API servers learn of a configuration through a watch, too


def is_complete(configuration: Configuration) -> bool:
    """Say whether a configuration has every creation, update and deletion of queues reviewed, and their states."""
    asked = [pair for webhook in configuration.webhooks or () for pair in _asked(webhook)]
    return all(pair in asked for pair in _NEEDED)


def _asked(webhook: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of resource and operation that are never let through without an answer."""
    if webhook.get("failurePolicy", "Fail") != "Fail" or webhook.get("objectSelector"):
        return []
    conditions = [condition.get("expression") for condition in webhook.get("matchConditions") or ()]
    found = [
        (resource, operation)
        for rule in webhook.get("rules") or ()
        if _has(rule, "apiGroups", keys.SCHEDULING_GROUP, "*") and _has(rule, "apiVersions", "v1beta1", "*")
        if rule.get("scope", "*") in ("*", "Cluster")
        for resource, operation in _NEEDED
        if _has(rule, "resources", *_COVERING[resource]) and _has(rule, "operations", operation, "*")
    ]
    return [one for one in found if not conditions or (one[0] == "queues/status" and conditions == [STATE_CHANGES])]


def _has(rule: Mapping[str, Any], field: str, *values: str) -> bool:
    return not set(values).isdisjoint(rule.get(field) or ())


class QueueGuard:
    """Follows the webhook configuration of queues."""

    def __init__(self, view: ConfigurationView, clock: Clock) -> None:
        self._view, self._clock = view, clock
        self._judged: Configuration | None = None
        self._since: float | None = None

    def holds(self) -> bool:
        """Say whether every change has been reviewed for a while."""
        return self._since is not None and self._clock.monotonic() - self._since >= _SETTLED_S

    def look(self) -> None:
        """Judge the configuration, if it is another one than before."""
        found = self._view.by_name.get(WEBHOOKS[QUEUE_PATH].configuration)
        if found is self._judged:
            return
        self._judged = found
        if found is None or not is_complete(found):
            self._since = None
        elif self._since is None:
            self._since = self._clock.monotonic()
        if found is not None and self._since is None:
            log.warning(
                "changes of the state of queues are not reviewed, so every job has its queue read; "
                "add the webhook for queues/status of manifests/webhooks",
                configuration=found.metadata.name,
            )
