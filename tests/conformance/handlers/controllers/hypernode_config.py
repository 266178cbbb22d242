"""Area controllers/hypernode_config: the configuration of the discovery of HyperNodes."""

from typing import Final

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.controllers.hypernode.configuration import ConfigurationError, read


def _load(case: Case) -> Outcome:
    settings = case.input["configMap"]
    if settings.get("metadata", {}).get("name") != case.input["configMapName"]:
        return {"config": None, "error": "NotFound"}  # the watch shows no such ConfigMap
    assert settings["metadata"]["namespace"] == case.input["namespace"]
    try:
        return {"config": read(settings.get("data", {})), "error": None}
    except ConfigurationError as error:
        return {"config": None, "error": str(error)}


OPERATIONS: Final = {
    "load": Operation(_load, {"config": same, "error": same}, frozenset({"namespace", "configMapName", "configMap"})),
}
