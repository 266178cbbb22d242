"""The configuration of discovery: which sources of HyperNodes there are, from a ConfigMap.

    networkTopologyDiscovery:
    - source: label
      enabled: true
      interval: 10m
      config:
        networkTopologyTypes:
          roce:
          - nodeLabel: example.com/spine        # the widest domain
          - nodeLabel: example.com/rack
          - nodeLabel: kubernetes.io/hostname   # the last one is the node itself

:func:`read` gives the document as it is, :func:`sources` what it asks for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from volcano_py.conf.plain import read_plain
from volcano_py.conf.schema import ConfError

KEY: Final = "volcano-controller.conf"
"""Of the ConfigMap."""
LABEL_SOURCE: Final = "label"
_DISCOVERY: Final = "networkTopologyDiscovery"
_LONGEST_TYPE: Final = 20


class ConfigurationError(ValueError):
    """The configuration cannot be read; the message says what is wrong, in Volcano's words where it has some."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What discovery is to do."""

    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each kind of network, the labels of nodes, the narrowest domain first."""
    by_label: bool = False
    """Whether HyperNodes are found from labels of nodes."""
    problems: tuple[str, ...] = ()


def read(data: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration in the data of a ConfigMap; raise ConfigurationError."""
    if KEY not in data:
        raise ConfigurationError(f"config key not found in ConfigMap: {KEY}")
    try:
        document = read_plain(data[KEY], KEY)
    except ConfError as error:
        raise ConfigurationError(f"failed to parse config: yaml: {_told(error)}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"failed to parse config: yaml: a mapping is expected, not {document!r:.40}")
    return document


def sources(document: Mapping[str, Any]) -> Sources:
    """Return what a configuration asks for; what cannot be done is a problem, and the rest counts."""
    problems: list[str] = []
    types: dict[str, tuple[str, ...]] = {}
    by_label = False
    entries = document.get(_DISCOVERY) or []
    if not isinstance(entries, list):
        return Sources(problems=(f"{_DISCOVERY} is not a list",))
    for index, entry in enumerate(entries):
        where = f"{_DISCOVERY}[{index}]"
        if not isinstance(entry, dict):
            problems.append(f"{where} is not a mapping")
        elif entry.get("enabled") is not True:
            continue
        elif entry.get("source") != LABEL_SOURCE:
            problems.append(f"{where}: source {entry.get('source')!r} is not supported: use {LABEL_SOURCE}")
        elif by_label:
            problems.append(f"{where}: source {LABEL_SOURCE} is configured twice; the first one counts")
        else:
            by_label = True
            types = _types(entry.get("config"), f"{where}.config", problems)
    return Sources(types, by_label, tuple(problems))


def _types(config: Any, where: str, problems: list[str]) -> dict[str, tuple[str, ...]]:
    written = config.get("networkTopologyTypes") if isinstance(config, dict) else None
    if not isinstance(written, dict):
        problems.append(f"{where}.networkTopologyTypes is missing")
        return {}
    found = {}
    for name, levels in written.items():
        try:
            found[str(name)] = _labels(str(name), levels)
        except ConfigurationError as error:
            problems.append(f"{where}.networkTopologyTypes.{name}: {error}")
    return found


def _labels(name: str, levels: Any) -> tuple[str, ...]:
    if len(name) > _LONGEST_TYPE:
        raise ConfigurationError(f"the name has more than {_LONGEST_TYPE} characters")
    if not isinstance(levels, Sequence) or not all(isinstance(level, dict) for level in levels):
        raise ConfigurationError("it is not a list of node labels, such as [{nodeLabel: example.com/rack}]")
    labels = [level.get("nodeLabel") for level in levels]
    if not all(isinstance(label, str) and label for label in labels):
        raise ConfigurationError("an entry has no nodeLabel")
    if repeated := sorted({label for label in labels if labels.count(label) > 1}):
        raise ConfigurationError(f"label {repeated[0]} is there twice")
    return tuple(reversed(labels[:-1]))


def _told(error: ConfError) -> str:
    cause = error.__cause__  # the library of C has the words that Go's library has, too
    problem = (isinstance(cause, yaml.MarkedYAMLError) and cause.problem) or error.problem
    return f"line {error.where.line}: {problem}" if error.where.line > 1 else problem
