"""The policies, one module or package each, and the table of all of them."""

from typing import Final

from volcano_py.framework.contract.plugin import Plugin
from volcano_py.plugins.binpack import Binpack
from volcano_py.plugins.capacity import Capacity
from volcano_py.plugins.cdp import Cdp
from volcano_py.plugins.conformance import Conformance
from volcano_py.plugins.drf import Drf
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.network_topology_aware import NetworkTopologyAware
from volcano_py.plugins.nodegroup import NodeGroup
from volcano_py.plugins.nodeorder import NodeOrdering
from volcano_py.plugins.overcommit import Overcommit
from volcano_py.plugins.pdb import Pdb
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.priority import Priority
from volcano_py.plugins.proportion import Proportion
from volcano_py.plugins.rescheduling import Rescheduling
from volcano_py.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano_py.plugins.resourcequota import ResourceQuotas
from volcano_py.plugins.sla import Sla
from volcano_py.plugins.task_topology import TaskTopology
from volcano_py.plugins.tdm import Tdm
from volcano_py.plugins.usage import Usage

PLUGINS: Final[dict[str, type[Plugin]]] = {
    plugin.name: plugin
    for plugin in (
        Binpack,
        Capacity,
        Cdp,
        Conformance,
        Drf,
        Gang,
        NetworkTopologyAware,
        NodeGroup,
        NodeOrdering,
        Overcommit,
        Pdb,
        Predicates,
        Priority,
        Proportion,
        Rescheduling,
        ResourceQuotas,
        ResourceStrategyFit,
        Sla,
        TaskTopology,
        Tdm,
        Usage,
    )
}
"""Plugin class by its name in the conf."""
