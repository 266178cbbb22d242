"""The metrics of the programs: names and labels of every metric that the code registers."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry

import volcano_py.metrics
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.metrics.exposition import COUNTERS_WITHOUT_TOTAL

_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}
_ADDED = {"histogram": {"le"}}
_NAME = re.compile(r"\b(?:volcano|rest_client|process)_[a-z0-9_]+\b(?!:)")
_SELECTED = re.compile(r"\b((?:volcano|rest_client|process)_[a-z0-9_]+)\{([^}]*)\}")
_OF_PROCESS = re.compile(r"and on \(instance\) (?:max by \(instance\) \(\w+\)|\w+(?: == 1)?)")
"""What chooses a process by a metric that only this kind of process has."""
_BY = re.compile(r"\bby \(([^)]*)\)")


class Metric(NamedTuple):
    """One metric as Prometheus knows it."""

    family: str  # the name in `# TYPE`
    kind: str
    labels: frozenset[str]


def of_scheduler() -> CollectorRegistry:
    """Return a registry with every metric of the scheduler."""
    registry = CollectorRegistry()
    for module in pkgutil.iter_modules(volcano_py.metrics.__path__):
        loaded = importlib.import_module(f"volcano_py.metrics.{module.name}")
        for _, family in inspect.getmembers(loaded, inspect.isclass):
            if family.__module__ == loaded.__name__ and list(inspect.signature(family).parameters) == ["registry"]:
                family(registry)
    return registry


def of_controllers() -> CollectorRegistry:
    """Return a registry with the metrics that only the controllers have."""
    registry = CollectorRegistry()
    ControllerMetrics(registry)
    return registry


def of_webhooks() -> CollectorRegistry:
    """Return a registry with the metrics that only the webhooks have."""
    registry = CollectorRegistry()
    AdmissionMetrics(registry)
    return registry


def series(registry: CollectorRegistry) -> dict[str, Metric]:
    """Return every series name that may occur in an expression."""
    found: dict[str, Metric] = {}
    for collector in registry._collector_to_names:
        for family in list(collector.collect()) or collector.describe():
            own = getattr(family, "_labelnames", ())  # of a family that is added up when somebody asks
            labels = frozenset(getattr(collector, "_labelnames", own))
            name = f"{family.name}_total" if family.type == "counter" else family.name
            kind = "counter" if name in COUNTERS_WITHOUT_TOTAL else family.type
            metric = Metric(name, kind, labels | _ADDED.get(family.type, set()))
            for suffix in _SUFFIXES[family.type]:
                found[f"{family.name}{suffix}"] = metric
    return found


def names(expression: str) -> set[str]:
    """Return the metrics that an expression reads."""
    return set(_NAME.findall(re.sub(r'"[^"]*"', '""', expression)))


def labels(expression: str) -> Iterator[tuple[str, str]]:
    """Yield (metric, label) for every label that an expression selects or groups by."""
    for name, selector in _SELECTED.findall(expression):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            yield name, label
    plain = _OF_PROCESS.sub("", expression)
    for listed in _BY.findall(plain):
        for label in listed.split(","):
            for name in names(plain):
                if label.strip() != "instance":  # Prometheus adds it
                    yield name, label.strip()
