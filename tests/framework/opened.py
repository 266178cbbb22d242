"""A session over wire objects, opened and left to the test."""

from typing import Any

from volcano_py.framework.session import Session
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.testing import a_cluster, a_policy


def opened(
    *objects: Any,
    plugins: Any,
    actions: str = "allocate",
    now: float = 0.0,
    memory: Memory | None = None,
    **options: Any,
) -> Session:
    """Open a session of a policy over a cluster; further options are those of `a_cluster`."""
    policy = a_policy(actions, plugins)
    return Session(
        snapshot=a_cluster(*objects, **options).snapshot(),
        tiers=policy.instantiate(),
        actions=frozenset(policy.action_names),
        clock=CycleClock(now),
        seed=0,
        memory=memory or Memory(),
        emit=lambda batch: None,
        static_filters=policy.static_filters,
    )
