"""The HyperNode controller: watches HyperNodes, nodes and the configuration of discovery."""

import os
from collections.abc import Iterable, Mapping
from typing import Final

import structlog

from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.api.topology import HyperNode
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.hypernode import configuration, decision, discovery
from volcano_py.controllers.hypernode.configuration import ConfigurationError, Sources
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.view import View
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import CONFIG_MAPS, HYPER_NODES, NODES
from volcano_py.model.hyper_nodes import NodeNames
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

_WORKERS: Final = 1
_DISCOVERY: Final = ""  # the key that stands for all HyperNodes that are found from labels
_RELEASE: Final = "HELM_RELEASE_NAME"
_NAMESPACE: Final = "KUBE_POD_NAMESPACE"


class NamedNode(Wire, frozen=True):
    """A node: its name and labels."""

    metadata: ObjectMeta


class Settings(Wire, frozen=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


class HyperNodeController:
    """Counts the nodes of each HyperNode, and makes HyperNodes from labels of nodes if it is configured to."""

    name: Final = "hyperNode-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._count_after_s = context.options.count_after_s
        self._served = context.served
        self._hyper_nodes: View[HyperNode] = View()
        self._nodes: View[NamedNode] = View()
        self._settings: View[Settings] = View()
        self._names: NodeNames | None = None  # of all nodes, until one of them changes
        self._sources = Sources()
        self._shell: Shell[str] = Shell(context, self.name, self._look, workers=_WORKERS, refill=self._all)
        self._hyper_nodes.subscribe(self._hyper_node_changed)
        self._nodes.subscribe(self._node_changed)
        self._settings.subscribe(lambda _, __, after: self._configured(after))

    def watch(self, informers: Informers) -> None:
        """Add the informers of HyperNodes, nodes, and the one ConfigMap."""
        release, namespace = os.environ.get(_RELEASE, "volcano"), os.environ.get(_NAMESPACE, "volcano-system")
        informers.add(HYPER_NODES, HyperNode, self._hyper_nodes, optional=True)
        informers.add(NODES, NamedNode, self._nodes)
        informers.add(
            CONFIG_MAPS,
            Settings,
            self._settings,
            namespace=namespace,
            field_selector=f"metadata.name={release}-controller-configmap",
        )

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._shell.start(supervisor)

    def backlog(self) -> int:
        """Return how many HyperNodes wait in the work queue or are being reconciled."""
        return self._shell.backlog

    # Changes

    def _hyper_node_changed(self, name: str, before: HyperNode | None, after: HyperNode | None) -> None:
        self._shell.changed(name)
        if any(one is not None and discovery.is_ours(one) for one in (before, after)):
            self._shell.changed(_DISCOVERY)

    def _node_changed(self, _: str, before: NamedNode | None, after: NamedNode | None) -> None:
        if before is not None and after is not None and before.metadata.labels == after.metadata.labels:
            return
        self._names = None
        for name in self._selecting():
            self._shell.changed(name, self._count_after_s)
        self._shell.changed(_DISCOVERY, self._count_after_s)

    def _configured(self, settings: Settings | None) -> None:
        """Take over a configuration; a faulty one is reported, and the one before it stays."""
        if settings is None:
            self._sources = Sources()
            return
        try:
            self._sources = found = configuration.sources(configuration.read(settings.data or {}))
        except ConfigurationError as error:
            log.warning("the configuration of HyperNodes stays as it was", problem=str(error))
            return
        for problem in found.problems:
            log.warning("a part of the configuration of HyperNodes has no effect", problem=problem)
        log.info("discovery of HyperNodes", by_label=found.by_label, types=sorted(found.types))
        self._shell.changed(_DISCOVERY)

    # Looks

    def _all(self) -> Iterable[str]:
        return [_DISCOVERY, *self._hyper_nodes.keys()]

    def _selecting(self) -> Iterable[str]:
        """Return the HyperNodes whose number of nodes depends on names or labels of nodes."""
        return [
            name
            for name, one in self._hyper_nodes.objects.items()
            if any(member.selector.exact_match is None for member in one.spec.members)
        ]

    def _look(self, key: str) -> Plan:
        if not self._served(HYPER_NODES):
            return NOTHING
        if key == _DISCOVERY:
            if not self._sources.by_label:
                return NOTHING
            return discovery.plan(self._sources.types, self._labels(), self._hyper_nodes.objects.values())
        one = self._hyper_nodes.get(key)
        return NOTHING if one is None else decision.plan(one, self._node_names())

    def _labels(self) -> Mapping[str, Mapping[str, str]]:
        return {name: node.metadata.labels for name, node in self._nodes.objects.items()}

    def _node_names(self) -> NodeNames:
        if self._names is None:
            labels = self._labels()
            self._names = NodeNames(list(labels), list(labels.values()))
        return self._names
