"""The section ``metrics``: which server knows the measured loads of nodes.

    metrics:
      type: prometheus                 # prometheus, prometheus_adaptor or elasticsearch; without it loads are not read
      address: http://prometheus:9090
      interval: 30s                    # between two queries
      tls.insecureSkipVerify: "false"
      elasticsearch.index: metricbeat-*
      elasticsearch.username: ""
      elasticsearch.password: ""
      elasticsearch.hostnameFieldName: host.hostname

A key with a dot may also be written as a section of its own: ``tls: {insecureSkipVerify: "false"}``.

``prometheus_adaptor`` asks the custom metrics API of the cluster and needs no address.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.conf.spelling import did_you_mean

PROMETHEUS: Final = "prometheus"
ADAPTOR: Final = "prometheus_adaptor"
ELASTICSEARCH: Final = "elasticsearch"
TYPES: Final = (PROMETHEUS, ADAPTOR, ELASTICSEARCH)

_DEFAULT_INTERVAL_S: Final = 30.0
_SKIP_VERIFY: Final = "tls.insecureSkipVerify"
_INDEX, _USER, _PASSWORD, _HOST_FIELD = (
    f"elasticsearch.{name}" for name in ("index", "username", "password", "hostnameFieldName")
)
PUBLIC_KEYS: Final = frozenset({"type", "address", "interval", _SKIP_VERIFY, _INDEX, _USER, _HOST_FIELD})
"""The keys of the section that hold no secrets."""
_KEYS: Final = PUBLIC_KEYS | {_PASSWORD}


@dataclass(frozen=True, slots=True)
class NodeMetricsConf:
    """The server to ask for the loads of nodes, and how often."""

    kind: str
    address: str = ""
    interval_s: float = _DEFAULT_INTERVAL_S
    verify: bool = True  # the server's certificate
    index: str = "metricbeat-*"
    username: str = ""
    password: str = field(default="", repr=False)
    host_field: str = "host.hostname"


def read_node_metrics(metrics: Mapping[str, str]) -> tuple[NodeMetricsConf | None, list[str]]:
    """Return the parsed section and its problems; None if it names no server that can be asked."""
    unknown = sorted(metrics.keys() - _KEYS)
    problems = [f"metrics.{key} is unknown and ignored{did_you_mean(key, sorted(_KEYS))}" for key in unknown]
    kind = metrics.get("type", "")
    if not kind:
        return None, problems
    if kind not in TYPES:
        known = ", ".join(TYPES)
        return None, [*problems, f"metrics.type is {kind!r}; known types: {known}. Loads of nodes are not read"]
    address = metrics.get("address", "").rstrip("/")
    if kind != ADAPTOR and not address.startswith(("http://", "https://")):
        text = f"metrics.address is {address!r}: write a URL such as http://prometheus:9090"
        return None, [*problems, f"{text}. Loads of nodes are not read"]
    return (
        NodeMetricsConf(
            kind=kind,
            address=address,
            interval_s=_interval(metrics.get("interval", ""), problems),
            verify=metrics.get(_SKIP_VERIFY) != "true",
            index=metrics.get(_INDEX) or "metricbeat-*",
            username=metrics.get(_USER, ""),
            password=metrics.get(_PASSWORD, ""),
            host_field=metrics.get(_HOST_FIELD) or "host.hostname",
        ),
        problems,
    )


def _interval(text: str, problems: list[str]) -> float:
    if not text:
        return _DEFAULT_INTERVAL_S
    try:
        seconds = parse_go_duration(text)
        if seconds <= 0:
            raise DurationError("it must be longer than 0")
    except DurationError as error:
        problems.append(f"metrics.interval is {text!r}: {error}; {_DEFAULT_INTERVAL_S:g}s is used")
        return _DEFAULT_INTERVAL_S
    return seconds
