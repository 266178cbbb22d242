"""Metrics of the configuration in force and of its changes."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class ConfMetrics:
    """The hash of the configuration, so that operators see which process runs which configuration."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._info = Gauge(
            "volcano_py_conf_info", "1 for the configuration in force.", ["file", "hash"], registry=registry
        )
        self._reloads = Counter(
            "volcano_py_conf_reloads_total",
            "Changes of the configuration by result: applied or refused.",
            ["result"],
            registry=registry,
        )
        self._applied = self._reloads.labels("applied")
        self._refused = self._reloads.labels("refused")
        self._behind = Gauge(
            "volcano_py_conf_refused",
            "1 while the configuration file cannot be used and the previous configuration stays in force.",
            registry=registry,
        )
        self._missing = Gauge(
            "volcano_py_conf_missing",
            "Actions, plugins and switches of the configuration that Volcano has and this scheduler lacks.",
            registry=registry,
        )

    def in_force(self, file: str, digest: str, missing: int) -> None:
        """Show the configuration that is in force from now on."""
        self._info.clear()
        self._info.labels(file, digest).set(1)
        self._missing.set(missing)
        self._behind.set(0)

    def unchanged(self) -> None:
        """Note that the file again equals the configuration in force."""
        self._behind.set(0)

    def applied(self) -> None:
        """Count a change that is in force."""
        self._applied.inc()

    def refused(self) -> None:
        """Count a change that cannot be used."""
        self._refused.inc()
        self._behind.set(1)
