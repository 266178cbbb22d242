"""Which two specs mean the same: clients written in Go leave out zeros and write durations and quantities anew.

A Go client that reads a job and writes it back turns ``5m`` into ``5m0s`` and ``1024Mi`` into ``1Gi``, and leaves out
``hostNetwork: false``. It leaves out what is empty. Some empty values mean something: ``labelSelector: {}`` selects all
pods and no selector none, and ``storageClassName: ""`` means no class and no name the default one.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from volcano_py.admission.amounts import amount
from volcano_py.api.batch import Job
from volcano_py.api.duration import DurationError, parse_go_duration

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
"""Maps of quantities."""
_AMOUNT: Final = frozenset({"sizeLimit", "divisor"})
_ZEROS: Final = frozenset(
    {
        *("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly", "hostPort"),
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    }
)
"""Fields of pods that are left out if they are false or 0; elsewhere these are values."""
_MAPS: Final = frozenset(
    {
        *("labels", "annotations", "nodeSelector", "matchLabels", "resources", "metadata", *_AMOUNTS),
        *("securityContext", "capabilities", "lifecycle", "dnsConfig"),
        *("affinity", "nodeAffinity", "podAffinity", "podAntiAffinity"),
    }
)
"""Fields that say nothing if they are empty; an empty selector and an empty source of a volume say something."""
_NAMES: Final = frozenset({"storageClassName", "volumeAttributesClassName", "apiGroup"})
"""Texts that mean something if they are empty."""


def fixed_spec(job: Job) -> Mapping[str, Any]:
    """Return the part of a job's spec that may not change, in a form in which equal means the same."""
    spec = msgspec.structs.replace(
        job.spec,
        min_available=0,
        priority_class_name="",
        running_estimate=_seconds(job.spec.running_estimate),
        policies=[msgspec.structs.replace(one, timeout=_seconds(one.timeout)) for one in job.spec.policies],
        tasks=[
            msgspec.structs.replace(
                task,
                replicas=0,
                min_available=None,
                template=_plain(task.template),
                policies=[msgspec.structs.replace(one, timeout=_seconds(one.timeout)) for one in task.policies],
            )
            for task in job.spec.tasks
        ],
        volumes=[
            msgspec.structs.replace(volume, volume_claim_name="", volume_claim=_plain(volume.volume_claim))
            if volume.volume_claim is not None
            else volume
            for volume in job.spec.volumes
        ],
    )
    found: Mapping[str, Any] = msgspec.to_builtins(spec)
    return found


def _plain(value: Any, name: str = "") -> Any:
    """Return a value without what a Go client leaves out, its quantities as numbers."""
    if isinstance(value, Mapping):
        if name in _AMOUNTS:
            return {key: str(amount(item)) for key, item in value.items()}
        plain = {key: _plain(item, key) for key, item in value.items()}
        return {key: item for key, item in plain.items() if not _left_out(key, item)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(amount(value)) if name in _AMOUNT and value is not None else value


def _left_out(name: str, value: Any) -> bool:
    if value is None or value == []:
        return True
    if value == "":
        return name not in _NAMES
    if value == {}:
        return name in _MAPS
    return name in _ZEROS and not value


def _seconds(text: str | None) -> str | None:
    """Return a duration in seconds; one that cannot be read stays, because another rule refuses it."""
    if text is None:
        return None
    try:
        return str(parse_go_duration(text))
    except DurationError:
        return text
