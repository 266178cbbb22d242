"""The controller manager inside a local system, on the same event loop as everything else."""

from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.kube.credentials import Credentials


def make_controllers(url: str) -> ControllerManager:
    """Return all controllers for the API server at ``url``, without ports of their own."""
    options = ManagerOptions(metrics_address=None, health_address=None)
    return ControllerManager(Credentials(url), options)
