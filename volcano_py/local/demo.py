"""The demo: runs both cases on one local system, shows a live table, and returns a summary at the end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano_py.kube.resource import PODS
from volcano_py.local import workload
from volcano_py.local.cluster import LocalCluster
from volcano_py.local.controllers import make_controllers
from volcano_py.local.running import running
from volcano_py.local.scheduler import local_scheduler
from volcano_py.local.workload import JobView
from volcano_py.runtime.signals import Shutdown

POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the demo."""

    port: int = 0  # of the API server, 0 takes a free one
    gang: bool = True  # whether the gang plugin runs
    run_time_s: float = 3.0  # how long a training job works once all its pods run
    give_up_s: float = 45.0  # the demo ends after this time at the latest
    quiet_s: float = 10.0  # or after this time without a change


@dataclass(slots=True)
class DemoResult:
    """What happened, in numbers."""

    url: str = ""
    seconds: float = 0.0
    ended: list[str] = field(default_factory=list)  # training jobs that ended, in order
    stuck: list[JobView] = field(default_factory=list)  # jobs placed in part and waiting when the demo gave up
    partly_placed: int = 0  # largest number of training jobs that were placed in part at one time
    gpus_bound_before: int = 0  # GPU pods bound while a GPU was missing
    why_gpu: str = ""
    gpu_seconds: float | None = None  # from the hundredth GPU to the hundredth bind
    pods: int = 0  # that the job controller created
    bindings: int = 0
    other_writes: int = 0  # PodGroups, statuses, conditions and events, by scheduler and controllers


@dataclass(slots=True)
class Frame:
    """What the table shows at one moment."""

    seconds: float
    jobs: list[JobView]
    nodes: list[tuple[str, str, float, float]]
    note: str


async def run_demo(options: DemoOptions, show: Callable[[Frame], None]) -> DemoResult:
    """Run the demo and return its result; ``show`` is called with every new frame."""
    result = DemoResult()
    async with (
        LocalCluster(options.port) as cluster,
        running("controller manager", make_controllers(cluster.url), Shutdown()),
        local_scheduler(cluster.url, gang=options.gang),
    ):
        result.url = cluster.url
        for obj in (*workload.nodes(), *workload.training_jobs(), workload.gpu_gang()):
            cluster.create(obj)
        await _Run(options, cluster, result, show).until_done()
        result.pods, result.bindings, result.other_writes = _writes(cluster.writes)
    return result


class _Run:
    """Plays the program inside the pods and observes the cluster."""

    def __init__(
        self, options: DemoOptions, cluster: LocalCluster, result: DemoResult, show: Callable[[Frame], None]
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._result = result
        self._show = show
        self._started = time.monotonic()
        self._working: dict[str, float] = {}  # training job -> when all its pods were running
        self._gpu_added: float | None = None
        self._changed = (0.0, (0, 0))  # time of the last change; pods placed and pods ended then

    async def until_done(self) -> None:
        """Observe, act and show frames until all jobs are done, nothing changes any more, or time is up."""
        while True:
            now = time.monotonic() - self._started
            views = workload.jobs(self._cluster)
            await self._work(views, now)
            self._watch_gpus(views, now)
            self._result.seconds = now
            self._show_frame(now, views)
            training = [view for view in views if view.name != workload.GPU_GANG]
            partly = [view for view in training if 0 < view.placed - view.ended < view.minimum and not view.ended]
            self._result.partly_placed = max(self._result.partly_placed, len(partly) if self._settled(partly) else 0)
            if len(self._result.ended) == workload.TRAINING_JOBS and self._result.gpu_seconds is not None:
                self._show_frame(now, workload.jobs(self._cluster))  # the last job has just ended; this frame stays
                return
            progress = (sum(view.placed for view in views), sum(view.ended for view in views))
            if progress != self._changed[1]:
                self._changed = (now, progress)
            if now > self._options.give_up_s or now - self._changed[0] > self._options.quiet_s:
                self._result.stuck = partly
                return
            await asyncio.sleep(POLL_S)

    def _show_frame(self, now: float, views: list[JobView]) -> None:
        self._show(Frame(now, views, workload.usage(self._cluster), self._note()))

    def _settled(self, partly: list[JobView]) -> bool:
        """Say whether a job stays placed in part; a gang whose binds are under way does not count."""
        return any(view.running == view.placed for view in partly)

    async def _work(self, views: list[JobView], now: float) -> None:
        for view in views:
            if view.name == workload.GPU_GANG or view.name in self._result.ended:
                continue
            if view.running == view.pods:
                started = self._working.setdefault(view.name, now)
                if now - started >= self._options.run_time_s:
                    await self._cluster.finish(list(workload.pods_of(self._cluster, view.name)))
                    self._result.ended.append(view.name)

    def _watch_gpus(self, views: list[JobView], now: float) -> None:
        gang = next((view for view in views if view.name == workload.GPU_GANG), None)
        if gang is None:
            return
        if self._gpu_added is None:
            self._result.gpus_bound_before = gang.placed
            # The GPU is added once the user can read the reason on the PodGroup, or after some seconds.
            if (gang.why and now > self._options.run_time_s) or now > 3 * self._options.run_time_s:
                self._result.why_gpu = gang.why
                self._cluster.create(workload.hundredth_gpu())
                self._gpu_added = now
        elif self._result.gpu_seconds is None and gang.placed == gang.pods:
            self._result.gpu_seconds = now - self._gpu_added

    def _note(self) -> str:
        if self._gpu_added is None:
            gang = "the gang waits as a whole" if self._options.gang else "every pod is placed on its own"
            return f"{workload.GPU_PODS} pods of one GPU each, 99 GPUs: {gang}"
        if self._result.gpu_seconds is None:
            return "a node with the hundredth GPU has been added"
        training = "run one after another" if self._options.gang else "hold parts of the cluster"
        return f"all {workload.GPU_PODS} GPU pods are bound; the training jobs {training}"


def _writes(counts: Mapping[tuple[str, str], int]) -> tuple[int, int, int]:
    """Return the created pods, the bindings and all other writes; only scheduler and controllers write over HTTP."""
    pods = counts.get(("create", PODS.plural), 0)
    bindings = sum(count for (_, resource), count in counts.items() if resource == "pods/binding")
    return pods, bindings, sum(counts.values()) - pods - bindings
