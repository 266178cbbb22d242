"""The base of the actions that evict for whole gangs: their arguments, and one plan for each starving job.

Arguments: ``allowWholeBundle`` (true): whole jobs may be evicted. ``maxDomains`` (8): how many domains (HyperNodes) are
tried for a job with a hard topology, 0 or less for 8.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from volcano_py.conf.arguments import Warn, get_bool, get_int
from volcano_py.framework.action import Action
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.domain_plans import MOST_DOMAINS
from volcano_py.framework.evicting.starving import StarvingJobs
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.model.arrays import Rows

_WHOLE: Final = "allowWholeBundle"
_DOMAINS: Final = "maxDomains"


class GangAction(Action):
    """An action that makes one plan for each starving job, in scheduling order."""

    arguments = frozenset({_WHOLE, _DOMAINS})
    skip_overused: ClassVar[bool]  # whether overused queues are left out

    def __init__(self, *, allow_whole: bool = True, most_domains: int = MOST_DOMAINS) -> None:
        self.allow_whole = allow_whole
        self.most_domains = most_domains if most_domains > 0 else MOST_DOMAINS

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> Self:
        """Read the arguments."""
        return cls(
            allow_whole=get_bool(arguments, _WHOLE, True, warn),
            most_domains=get_int(arguments, _DOMAINS, MOST_DOMAINS, warn),
        )

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = StarvingJobs(ssn.eviction)
        for queue, row in SchedulingOrder(ssn.state, ssn.hooks, starving.rows, skip_overused=self.skip_overused):
            if ssn.eviction.must_stop():
                break
            job, tasks = ssn.state.job(row), starving.tasks(row)
            requesting = tasks[~ssn.state.classes.best_effort[ssn.state.tasks.shape[tasks]]]
            try:
                if len(requesting):
                    with ssn.nominated_room.open_to(job):
                        self.plan(ssn, queue, job, requesting)
            except PluginFailed as failure:
                ssn.state.report.failed(failure, f"nobody is evicted for PodGroup {job.key}")
        ssn.eviction.end_of_action()

    @abstractmethod
    def plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        """Make room for the waiting tasks of a job that request resources."""
