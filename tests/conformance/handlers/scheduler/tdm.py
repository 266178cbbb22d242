"""Operations of the plugin tdm: parsing windows, nodes that a task may use, and tasks to evict now."""

from typing import Final

from tests.conformance.handlers.scheduler import node_order
from tests.conformance.handlers.scheduler.predicate import refusals
from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same, same_set
from tests.conformance.row_files import Case
from volcano_py.framework.contract import combine
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.tdm import parse_window


def _parse_zone(case: Case) -> Outcome:
    try:
        window = parse_window(case.input["zone"])
    except ValueError:
        return {"seconds": 0, "error": True}
    return {"seconds": window.seconds, "error": False}


def _revocable(case: Case) -> Outcome:
    """Return the nodes that pending pods may use, and their scores for each pod."""
    ssn = open_session(case)
    codes, _ = refusals(ssn)
    scores, feasible = {}, set()
    for row, record in enumerate(ssn.state.tasks.records):
        if record is None or ssn.state.tasks.status[row] != TaskStatus.PENDING:
            continue
        pod = str(record.ref)
        nodes = [node for node, code in codes[pod].items() if code == "Success"]
        task = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
        total = combine.total(ssn.hooks.nodes.node_orders, len(ssn.state.nodes), task, ssn.state.nodes)
        scores[pod] = {node: float(total[ssn.state.nodes.statics.row_of[node]]) for node in nodes}
        feasible |= set(nodes)
    return {"feasibleNodes": sorted(feasible), "nodeScores": scores, "tolerance": None}


def _victim_tasks(case: Case) -> Outcome:
    return {"victims": len(open_session(case).eviction.unconditional())}


VICTIM_TASKS: Final = Operation(_victim_tasks, {"victims": same}, INPUTS, needs_session=True)

OPERATIONS: Final = {
    "parseZone": Operation(_parse_zone, {"seconds": same, "error": same}, frozenset({"zone"})),
    "revocable": Operation(
        _revocable,
        {"feasibleNodes": same_set, "nodeScores": node_order.close, "tolerance": node_order.is_tolerance},
        INPUTS,
        needs_session=True,
    ),
    "victimTasks": VICTIM_TASKS,
}
