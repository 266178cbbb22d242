"""Statically infeasible nodes: tasks can never go there in a session, whatever is placed or evicted."""

from dataclasses import dataclass

from volcano_py.model.arrays import Bools


@dataclass(frozen=True, eq=False, slots=True)
class StaticallyInfeasible:
    """Where shapes of one static part can never go in a session. All these shapes share one object."""

    nodes: Bools  # (n_nodes,), read only
