"""The eleven paths of the webhooks: what each one reviews, and the name of its webhook configuration."""

from dataclasses import dataclass
from typing import Final

from volcano_py.admission.contract import CREATE, DELETE, UPDATE
from volcano_py.api import keys

CONFIGURATION_PREFIX: Final = "volcano-admission-service"
"""Volcano's webhook configurations begin with it, whatever the Service is called."""
_TOPOLOGY_GROUP: Final = "topology.volcano.sh"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One path."""

    path: str
    name: str
    """Of the webhook in its configuration."""
    group: str
    plural: str
    operations: tuple[str, ...] = (CREATE,)

    @property
    def mutates(self) -> bool:
        """Whether it changes objects instead of judging them."""
        return self.path.endswith("/mutate")

    @property
    def configuration(self) -> str:
        """The name of its webhook configuration."""
        return CONFIGURATION_PREFIX + self.path.replace("/", "-")

    @property
    def resource(self) -> str:
        """The resource that it reviews, for messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_CHANGES: Final = (CREATE, UPDATE)
_ALL: Final = (
    Webhook("/jobs/mutate", "mutatejob.volcano.sh", keys.BATCH_GROUP, "jobs"),
    Webhook("/jobs/validate", "validatejob.volcano.sh", keys.BATCH_GROUP, "jobs", _CHANGES),
    Webhook("/queues/mutate", "mutatequeue.volcano.sh", keys.SCHEDULING_GROUP, "queues"),
    Webhook("/queues/validate", "validatequeue.volcano.sh", keys.SCHEDULING_GROUP, "queues", (CREATE, UPDATE, DELETE)),
    Webhook("/podgroups/mutate", "mutatepodgroup.volcano.sh", keys.SCHEDULING_GROUP, "podgroups", _CHANGES),
    Webhook("/podgroups/validate", "validatepodgroup.volcano.sh", keys.SCHEDULING_GROUP, "podgroups"),
    Webhook("/pods/mutate", "mutatepod.volcano.sh", "", "pods"),
    Webhook("/pods/validate", "validatepod.volcano.sh", "", "pods"),
    Webhook("/jobflows/validate", "validatejob.volcano.sh", keys.FLOW_GROUP, "jobflows", _CHANGES),
    Webhook("/hypernodes/validate", "validatehypernodes.volcano.sh", _TOPOLOGY_GROUP, "hypernodes", _CHANGES),
    Webhook("/cronjobs/validate", "validatecronjob.volcano.sh", keys.BATCH_GROUP, "cronjobs", _CHANGES),
)
WEBHOOKS: Final = {webhook.path: webhook for webhook in _ALL}
"""By path, in Volcano's order."""
