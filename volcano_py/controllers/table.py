"""The controllers that exist, one line each: the door for a new one (see `volcano_py.controllers.controller`)."""

from collections.abc import Callable, Mapping
from typing import Final

from volcano_py.controllers.controller import Controller, ControllerContext
from volcano_py.controllers.podgroup.controller import PodGroupController
from volcano_py.controllers.queue.controller import QueueController

CONTROLLERS: Final[Mapping[str, Callable[[ControllerContext], Controller]]] = {
    QueueController.name: QueueController,
    PodGroupController.name: PodGroupController,
}
"""How to build each, by name, in the order in which they are built and started."""
