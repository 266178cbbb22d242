"""An embedded Kubernetes API server over real HTTP, and simulated kubelets."""

from volcano_py.apiserver.faults import Fault, Faults
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.server import ApiServer, PortInUse

__all__ = ["ApiServer", "ApiServerOptions", "Fault", "Faults", "PortInUse"]
