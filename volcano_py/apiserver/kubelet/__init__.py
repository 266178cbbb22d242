"""A stand-in for kubelets: YAML stages drive the status of nodes and pods."""

from volcano_py.apiserver.kubelet.engine import Kubelet
from volcano_py.apiserver.kubelet.ports import ClusterPort, HttpPort, InProcessPort
from volcano_py.apiserver.kubelet.stages import Stage, StageError, load_stages

__all__ = ["ClusterPort", "HttpPort", "InProcessPort", "Kubelet", "Stage", "StageError", "load_stages"]
