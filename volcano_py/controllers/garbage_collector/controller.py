"""The garbage collector: looks at finished jobs whose time to live ends soon, and carries out the plans of `decision`.

Only these wait in the work queue. The others are found when it is refilled, so that thousands of jobs that live for a
week leave room for the job that lives for a second.
"""

from collections.abc import Iterable
from typing import Final

import structlog

from volcano_py.api.batch import Job
from volcano_py.controllers.controller import SOON_S, ControllerContext
from volcano_py.controllers.garbage_collector import decision
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.writes import Delete, Write
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import VCJOBS
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()


class GarbageCollector:
    """Deletes finished jobs when their time to live is over. A job that is not finished costs no look and no timer."""

    name: Final = "gc-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._jobs = context.jobs
        self._clock = context.clock
        self._served = context.served
        self._shell: Shell[str] = Shell(
            context,
            self.name,
            self._look,
            workers=context.options.garbage_workers,
            refill=self._ending,
            on_written=self._deleted,
        )
        context.jobs.subscribe(self._job_changed)

    def watch(self, informers: Informers) -> None:
        """Add no informer: the manager watches the jobs."""

    def start(self, supervisor: Supervisor) -> None:
        """Start to look; until then, changes are only collected."""
        self._shell.start(supervisor)

    def backlog(self) -> int:
        """Return how many jobs wait for a look that is due, or have it."""
        return self._shell.backlog

    def _job_changed(self, key: str, _: Job | None, after: Job | None) -> None:
        if self._ends_soon(after):
            self._shell.changed(key)

    def _ending(self) -> Iterable[str]:
        keys = self._jobs.keys()
        return [key for key in keys if self._ends_soon(self._jobs.get(key))]

    def _ends_soon(self, job: Job | None) -> bool:
        left_s = decision.plan(job, self._clock.now()).look_again_s
        return job is not None and decision.needs_cleanup(job) and (left_s is None or left_s <= SOON_S)

    def _look(self, key: str) -> Plan:
        return decision.plan(self._jobs.get(key), self._clock.now()) if self._served(VCJOBS) else NOTHING

    def _deleted(self, _: str, write: Write, __: bytes) -> None:
        if isinstance(write, Delete):
            log.info("finished job deleted: its time to live is over", job=f"{write.namespace}/{write.name}")
