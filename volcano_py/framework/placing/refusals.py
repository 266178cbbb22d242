"""Why no node takes a task: the reasons of all nodes, counted as Volcano counts them.

A reason that holds before any node is looked at (`Reason.before_nodes`) is the only one, and all nodes have it. A node
that lacks a resource has only that reason. Otherwise the first plugin, in conf order, that refuses the node gives all
reasons: its early dynamic reasons, then a static one, or else all other dynamic reasons. (Volcano collects
statuses that an eviction could change until it meets one that no eviction could change, see `Predicate.early`.) So the
counts of a message may add up to more than the number of nodes.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.node_hooks import NodeHooks
from volcano_py.framework.hooks.refusals import Filter
from volcano_py.framework.placing.node_sets import NOT_OURS, NodeSets
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.rejections import Reason, Refusal, Rejection


def explain(state: State, hooks: NodeHooks, nodes_to_try: NodeSets, task: TaskInfo, *, promises: bool) -> Rejection:
    """Return why each node refuses a task of this shape now.

    With ``promises``, a resource is lacking if it still is once everything being released is free. Without, plugins are
    asked first, and a resource is lacking if it is not idle or is promised to others (Volcano's backfill checks no
    resources at all).
    """
    nodes = state.nodes
    counts = Counter[int]()
    silent = ~nodes_to_try.shut  # nodes without a reason yet
    verdicts = hooks.static_verdicts(task)
    everywhere = 0
    if verdicts.all():  # such a reason is a verdict on every node that no plugin before it refuses
        everywhere = next((code for code in hooks.before_nodes if (verdicts == code).any()), 0)
    if everywhere:
        counts[everywhere] = int(np.count_nonzero(silent))
        silent = np.zeros(len(nodes), dtype=bool)
    if promises:
        silent = _lacking(task, nodes.future_idle, silent, counts)
    for plugin in hooks.filters:
        if not silent.any():  # a full cluster: every node lacks a resource
            break
        said = np.zeros(len(nodes), dtype=bool)
        for code, refused in _statements(state, task, plugin, verdicts):
            refused = refused & silent
            counts[code] += int(np.count_nonzero(refused))
            said |= refused
        silent = silent & ~said
    if not promises:
        _lacking(task, np.minimum(nodes.idle, nodes.future_idle), silent, counts)
    refusals = [Refusal(hooks.reason(code), count) for code, count in counts.items() if count]
    # A Python loop over closed nodes: there are few, and each has its own reason.
    closed = Counter(nodes.statics.records[row].closed for row in np.flatnonzero(nodes.closed).tolist())
    refusals += [Refusal(Reason("cache", "node-closed", f"node(s) closed: {why}"), n) for why, n in closed.items()]
    if others := int(np.count_nonzero(nodes_to_try.shut & ~nodes.closed)):
        refusals.append(Refusal(NOT_OURS, others))
    return Rejection(len(nodes), tuple(sorted(refusals, key=lambda refusal: (-refusal.nodes, refusal.reason))))


def _lacking(task: TaskInfo, available: Floats, silent: Bools, counts: Counter[int]) -> Bools:
    """Count the first resource that each node lacks; return the nodes that still have no reason."""
    rows = np.where(silent, task.fit.first_lacking(available), -1)
    for row, count in enumerate(np.bincount(rows + 1)[1:].tolist()):
        if count:
            counts[-1 - row] += count
    return silent & (rows < 0)


def _statements(
    state: State, task: TaskInfo, plugin: Filter, verdicts: "np.ndarray[tuple[int], np.dtype[np.int16]]"
) -> Iterator[tuple[int, Bools]]:
    """Yield code and nodes (n_nodes,) of every reason of a plugin."""
    n = len(state.nodes)
    static = (verdicts >= plugin.static.start) & (verdicts < plugin.static.stop)
    for code in plugin.static:
        yield code, verdicts == code
    if plugin.point is None:
        return
    refused = plugin.point(task, state.nodes)
    if not isinstance(refused, np.ndarray) or refused.shape != (len(plugin.dynamic), n):
        expected = f"expected an array of shape ({len(plugin.dynamic)}, {n})"
        raise PluginFailed(plugin.point.plugin.name, plugin.point.method, expected)
    for number, code in enumerate(plugin.dynamic):
        if refused[number].any():  # most reasons apply to no node
            yield code, refused[number] if number < plugin.early else refused[number] & ~static
