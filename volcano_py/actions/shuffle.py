"""Evict the tasks that plugins say must go now, whoever gets their room.

A plugin's own rule decides who goes (`VictimTasks`); what a `VictimFilter` protects stays. There is no claimant, so
nothing is nominated: the next cycle places what is pending. (Volcano: actions/shuffle, where a budget for disruptions
is a reason to evict.)
"""

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.state.statement import Cause

_CAUSE = Cause("shuffle", "it must leave its node: a plugin of the configuration sends it away")


def shuffle(ssn: Session) -> None:
    """Run the action."""
    try:
        rows = ssn.eviction.unconditional()
    except PluginFailed as failure:
        ssn.state.report.failures.append(f"{failure}; nothing is shuffled in this cycle")
        return
    if len(rows):
        statement = ssn.statement()
        statement.evict(rows)
        statement.commit(_CAUSE)
