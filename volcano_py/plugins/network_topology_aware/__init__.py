"""Network topology: gangs and their sub-groups stay within domains of HyperNodes, in the fullest that has room."""

from volcano_py.plugins.network_topology_aware.plugin import NetworkTopologyAware

__all__ = ["NetworkTopologyAware"]
