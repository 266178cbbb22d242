"""Area usage: measured load, estimates for pods not yet measured, and the scores from both."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np

from tests.conformance.handlers.scheduler import node_order, predicate
from tests.conformance.handlers.scheduler.strategies import close, is_tolerance
from tests.conformance.operations import Operation, Outcome
from tests.conformance.row_files import Case
from volcano_py.api.core import Pod
from volcano_py.model.pod_request import pod_limits, pod_request
from volcano_py.plugins.usage.estimates import (
    Estimator,
    best_effort_estimate,
    load,
    mean_load,
    pod_estimate,
    risk,
)
from volcano_py.plugins.usage.plugin import score

_REQUESTS: Final = ("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit")


def _mean(given: Mapping[str, Any]) -> Any:
    loads = np.array([given["cpuComposite"], given["memComposite"]], dtype=float)
    return mean_load(loads, (given["cpuWeight"], given["memWeight"]))


def _risk(given: Mapping[str, Any]) -> Any:
    estimator = Estimator(risk_threshold=given["riskThreshold"], risk_factor=given["riskFactor"])
    return risk(given["loadCompositePercentage"], estimator)


def _estimate(given: Mapping[str, Any]) -> Any:
    estimator = replace(Estimator(), request_ratio=given["requestWeight"], burst_ratio=given["burstWeight"])
    return pod_estimate(given["request"], given["limit"], given["appliedRiskFactor"], estimator)


def _best_effort(given: Mapping[str, Any]) -> Any:
    return best_effort_estimate(given["configuredValue"], given["appliedRiskFactor"])


def _load(given: Mapping[str, Any]) -> Any:
    return load(given["realLoadPercent"], given["shadowEstAbs"], given["capacity"])


def _score(given: Mapping[str, Any]) -> Any:
    loads = np.array([given["cpu"], given["memory"]], dtype=float)
    return score(loads, (given["cpuWeight"], given["memWeight"]), given["usageWeight"])


def _value(ask: Callable[[Mapping[str, Any]], Any], *inputs: str) -> Operation:
    def run(case: Case) -> Outcome:
        return {"value": float(ask(case.input)), "tolerance": None}

    return Operation(run, {"value": close, "tolerance": is_tolerance}, frozenset(inputs))


def _requests(case: Case) -> Outcome:
    spec = msgspec.convert({"metadata": {}, **case.input["pod"]}, Pod).spec
    raw = pod_request(spec).raw
    cpu_limit, memory_limit = pod_limits(spec)
    numbers = (raw.get("cpu", 0.0), cpu_limit, raw.get("memory", 0.0), memory_limit)
    return {**dict(zip(_REQUESTS, numbers, strict=True)), "tolerance": None}


_ESTIMATE: Final = ("request", "limit", "requestWeight", "burstWeight", "appliedRiskFactor")

OPERATIONS: Final = {
    "compositePercentage": _value(_mean, "cpuComposite", "memComposite", "cpuWeight", "memWeight"),
    "appliedRiskFactor": _value(_risk, "loadCompositePercentage", "riskThreshold", "riskFactor"),
    "estimatePod": _value(_estimate, *_ESTIMATE),
    "estimateBestEffort": _value(_best_effort, "configuredValue", "appliedRiskFactor"),
    "compositeUtilization": _value(_load, "realLoadPercent", "shadowEstAbs", "capacity"),
    "nodeScore": _value(_score, "cpu", "memory", "cpuWeight", "memWeight", "usageWeight"),
    "requestAndLimit": Operation(
        _requests, {**dict.fromkeys(_REQUESTS, close), "tolerance": is_tolerance}, frozenset({"pod"})
    ),
    "predicate": predicate.OPERATION,
    "nodeOrder": node_order.OPERATION,
}
