"""Evict the tasks that plugins say must be evicted now, whoever gets their room.

The rule of a plugin chooses the victims (`VictimTasks`), and a `VictimFilter` may protect some of them. There is no
preemptor, so nothing is nominated: the next cycle places what is pending. (Volcano: actions/shuffle, where a disruption
budget is a reason to evict.)
"""

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.state.statement import Cause

_CAUSE = Cause("shuffle", "evicted from its node: a plugin of the configuration requires it")


def shuffle(ssn: Session) -> None:
    """Run the action."""
    statement = ssn.statement()
    try:
        rows = ssn.eviction.unconditional()
        if len(rows):
            statement.evict(rows)
    except PluginFailed as failure:
        statement.discard()
        ssn.state.report.failed(failure, "nothing is shuffled in this cycle")
        return
    if len(rows):
        statement.commit(_CAUSE)
