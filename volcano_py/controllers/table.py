"""The table of controllers, one line each; a new one is added here (see `volcano_py.controllers.controller`)."""

from collections.abc import Callable, Mapping
from typing import Final

from volcano_py.controllers.controller import Controller, ControllerContext
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.garbage_collector.controller import GarbageCollector
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.jobflow.controller import JobFlowController
from volcano_py.controllers.jobtemplate.controller import JobTemplateController
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController

CONTROLLERS: Final[Mapping[str, Callable[[ControllerContext], Controller]]] = {
    QueueController.name: QueueController,
    PodGroupController.name: PodGroupController,
    CronJobController.name: CronJobController,
    GarbageCollector.name: GarbageCollector,
    JobController.name: JobController,
    JobFlowController.name: JobFlowController,
    JobTemplateController.name: JobTemplateController,
    HyperNodeController.name: HyperNodeController,
}
"""Builds each controller by its name; they are built and started in this order."""
