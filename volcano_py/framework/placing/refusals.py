"""Why no node takes a task: what every node answers, counted by reason, as Volcano counts it.

A node that lacks a resource says only that. Otherwise plugins speak in their order until one refuses; what that one has
to say counts whole: its dynamic reasons before its static ones, then the static one, or, without one, all other dynamic
reasons. (Volcano collects statuses that an eviction could change until one comes that it could not, see
`Predicate.early`.) So the counts of a message may add up to more than the number of nodes.
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
    """Return what all nodes say to a task of this shape now.

    With ``promises`` a resource is lacking if it will still be after what is being released. Without them plugins speak
    first, and a resource is lacking that is not idle or promised to others (Volcano's backfill looks at no resources at
    all).
    """
    nodes = state.nodes
    counts = Counter[int]()
    silent = ~nodes_to_try.shut  # nodes that have said nothing yet
    if promises:
        silent = _lacking(task, nodes.future_idle, silent, counts)
    verdicts = hooks.static_verdicts(task)
    for plugin in hooks.filters:
        if not silent.any():  # a full cluster: every node has said what it lacks
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
    """Count the first resource that each node lacks; return the nodes that have still said nothing."""
    rows = np.where(silent, task.fit.first_lacking(available), -1)
    for row, count in enumerate(np.bincount(rows + 1)[1:].tolist()):
        if count:
            counts[-1 - row] += count
    return silent & (rows < 0)


def _statements(
    state: State, task: TaskInfo, plugin: Filter, verdicts: "np.ndarray[tuple[int], np.dtype[np.int16]]"
) -> Iterator[tuple[int, Bools]]:
    """Yield code and nodes (n_nodes,) of every reason that a plugin has to give."""
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
        yield code, refused[number] if number < plugin.early else refused[number] & ~static
