"""Every path of the webhooks, and the rule behind it."""

from collections.abc import Mapping
from typing import Final

from volcano_py.admission import cronjobs, hypernodes, jobflows, jobs, podgroups, pods, queues
from volcano_py.admission.contract import Rule

RULES: Final[Mapping[str, Rule]] = {
    "/jobs/mutate": jobs.mutate,
    "/jobs/validate": jobs.validate,
    "/queues/mutate": queues.mutate,
    "/queues/validate": queues.validate,
    "/podgroups/mutate": podgroups.mutate,
    "/podgroups/validate": podgroups.validate,
    "/pods/mutate": pods.mutate,
    "/pods/validate": pods.validate,
    "/jobflows/validate": jobflows.validate,
    "/hypernodes/validate": hypernodes.validate,
    "/cronjobs/validate": cronjobs.validate,
}
