"""Area task-topology: the topology of roles in a PodGroup's annotations."""

from typing import Any, Final

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.model.objects import JobKey, TopologyTexts
from volcano_py.plugins.task_topology.annotations import InvalidTopology, read


def _read(case: Case) -> Outcome:
    job = case.input["job"]
    unknown = job.keys() - {"name", "namespace", "podGroup", "tasks"}
    assert not unknown, f"a job has unknown keys: {sorted(unknown)}"
    annotations = job["podGroup"].get("metadata", {}).get("annotations", {})
    texts = TopologyTexts(
        *(annotations.get(key) for key in (keys.TOPOLOGY_AFFINITY, keys.TOPOLOGY_ANTI_AFFINITY, keys.TOPOLOGY_ORDER))
    )
    if texts == (None, None, None):
        return {"topology": None, "error": None}
    roles = {task["taskRole"] for task in job.get("tasks", {}).values()}
    try:
        topology = read(texts, roles, JobKey(job.get("namespace", ""), job.get("name", "")))
    except InvalidTopology as error:
        return {"topology": None, "error": str(error)}
    return {"topology": _written(texts, topology._asdict()), "error": None}


def _written(texts: TopologyTexts, topology: dict[str, Any]) -> dict[str, Any]:
    """Return the parsed topology; a part without an annotation is null."""
    groups = {name: [list(group) for group in topology[name]] for name in ("affinity", "anti_affinity")}
    return {
        "affinity": None if texts.affinity is None else groups["affinity"],
        "antiAffinity": None if texts.anti_affinity is None else groups["anti_affinity"],
        "taskOrder": None if texts.order is None else list(topology["order"]),
    }


OPERATIONS: Final = {"readAnnotations": Operation(_read, {"topology": same, "error": same}, frozenset({"job"}))}
