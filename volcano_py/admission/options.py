"""Settings of the webhook manager, and the configuration file of pods/mutate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from volcano_py.admission.certificates import DEFAULT_LIFETIME
from volcano_py.admission.contract import Options, ResourceGroup
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.pods import groups_of
from volcano_py.admission.server import ServerOptions
from volcano_py.conf.plain import read_plain
from volcano_py.conf.schema import ConfError
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.runtime.options import ListenAddress, OptionError

DEFAULT_PATHS: Final = (
    *("/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate"),
    *("/queues/mutate", "/queues/validate"),
)
"""Those of Volcano's program without a flag."""
DEFAULT_NAMESPACE: Final = "volcano-system"
SECRET: Final = "volcano-admission-secret"
CONFIG_FILE_KEY: Final = "volcano-admission.conf"
"""Of the ConfigMap in the manifests."""
DEFAULT_METRICS_ADDRESS: Final = ListenAddress("", 8082)
DEFAULT_HEALTH_ADDRESS: Final = ListenAddress("", 11251)
LEASE: Final = LeaseOptions(name="vc-webhook-manager")
_SHORTEST_LIFETIME: Final = timedelta(seconds=30)


class Files(NamedTuple):
    """The files of a certificate that somebody else makes."""

    certificate: Path
    key: Path
    authorities: Path


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Settings of one webhook manager. The defaults are those of the command line."""

    paths: tuple[str, ...] = DEFAULT_PATHS
    rules: Options = field(default_factory=Options)
    conf: Path | None = None
    """The file of resource groups."""
    files: Files | None = None
    """Without them, the process makes certificates itself and keeps them in a Secret."""
    namespace: str = DEFAULT_NAMESPACE
    """Of the Service and of the Secret."""
    service: str = ""
    url: str = ""
    """Where API servers reach this process if it has no Service; without a path."""
    lifetime: timedelta = DEFAULT_LIFETIME
    """Of the certificates that the process makes."""
    server: ServerOptions = field(default_factory=ServerOptions)
    graceful_s: float = 30.0
    """For reviews under way at the end."""
    metrics_address: ListenAddress | None = DEFAULT_METRICS_ADDRESS
    health_address: ListenAddress | None = DEFAULT_HEALTH_ADDRESS
    lease: LeaseOptions | None = None
    reflectors: ReflectorOptions = field(default_factory=ReflectorOptions)
    freeze_garbage: bool = False
    """Whether Python looks for reference cycles less often, in the whole process; reviews leave none behind."""

    def __post_init__(self) -> None:
        """Refuse settings that do not go together."""
        if not self.service and not self.url:
            raise OptionError(
                "API servers must know where the webhooks are: give --webhook-service-name and --webhook-namespace, "
                "or --webhook-url"
            )
        if self.url:
            _check_url(self.url)
        if self.lifetime < _SHORTEST_LIFETIME:
            raise OptionError(f"--certificate-lifetime must be at least {_SHORTEST_LIFETIME.seconds}s")

    @property
    def names(self) -> tuple[str, ...]:
        """The names and addresses under which API servers call, which a certificate must have."""
        service, namespace = self.service, self.namespace
        found = (f"{service}.{namespace}.svc", service, f"{service}.{namespace}") if service else ()
        host = urlsplit(self.url).hostname if self.url else None
        return (*found, host) if host else found


def parse_paths(text: str) -> tuple[str, ...]:
    """Read a list of paths; raise OptionError for one that does not exist, and for an empty list."""
    paths = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [path for path in paths if path not in WEBHOOKS]:
        raise OptionError(f"there is no webhook {unknown[0]}: write some of {','.join(WEBHOOKS)}")
    if not paths:
        raise OptionError(f"no webhook is asked for: write some of {','.join(WEBHOOKS)}")
    return paths


def files_of(certificate: str, key: str, authorities: str) -> Files | None:
    """Return the files of a certificate, None if none is named; raise OptionError if one is missing."""
    named = {"--tls-cert-file": certificate, "--tls-private-key-file": key, "--ca-cert-file": authorities}
    if not any(named.values()):
        return None
    if missing := [flag for flag, path in named.items() if not path]:
        raise OptionError(f"{', '.join(missing)}: a certificate needs all three files {', '.join(named)}")
    for flag, path in named.items():
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise OptionError(f"{flag}={path} cannot be read: {error.strerror}") from error
    return Files(Path(certificate), Path(key), Path(authorities))


def read_groups(text: str) -> tuple[ResourceGroup, ...]:
    """Read the resource groups of a configuration file; raise OptionError if it is wrong."""
    try:
        document = read_plain(text, CONFIG_FILE_KEY)
    except ConfError as error:
        raise OptionError(f"line {error.where.line}: {error.problem}") from error
    if document is None:
        return ()
    if not isinstance(document, dict):
        raise OptionError("it is not a mapping with the key resourceGroups")
    groups = document.get("resourceGroups") or []
    if not isinstance(groups, list):
        raise OptionError("resourceGroups is not a list")
    for index, group in enumerate(groups):
        _check_group(group, f"resourceGroups[{index}]")
    return groups_of(groups)


def _check_group(group: Any, where: str) -> None:
    if not isinstance(group, dict):
        raise OptionError(f"{where} is not a mapping")
    chosen = _typed(group, "object", dict, where)
    values = _typed(chosen, "value", list, f"{where}.object")
    if not all(isinstance(value, str) for value in values):
        raise OptionError(f"{where}.object.value is not a list of texts")
    tolerations = _typed(group, "tolerations", list, where)
    if not all(isinstance(toleration, dict) for toleration in tolerations):
        raise OptionError(f"{where}.tolerations is not a list of mappings")
    for name, kind in (("labels", dict), ("resourceGroup", str), ("schedulerName", str), ("affinity", str)):
        _typed(group, name, kind, where)
    _typed(chosen, "key", str, f"{where}.object")


def _typed(fields: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = fields.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise OptionError(f"{where}.{name} is not a {_WORDS[kind]}")
    return value


_WORDS: Final[Mapping[type, str]] = {dict: "mapping", list: "list", str: "text"}


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = (
            parts.scheme == "https" and bool(parts.hostname) and parts.port != 0 and not (parts.query + parts.fragment)
        )
    except ValueError:
        good = False
    if not good or parts.username:
        raise OptionError(f"--webhook-url={url}: write an address such as https://10.0.0.1:8443")


def webhook_names(paths: Sequence[str]) -> dict[str, str]:
    """Return path by name of the webhook configuration."""
    return {WEBHOOKS[path].configuration: path for path in paths}
