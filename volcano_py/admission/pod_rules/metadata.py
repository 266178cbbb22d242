"""Labels and annotations of a template."""

from collections.abc import Mapping
from typing import Any, Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj, Refusal
from volcano_py.admission.pod_rules.flaws import Flaws, each
from volcano_py.admission.reading import part

MOST_BYTES: Final = 256 * 1024
"""The size of all annotations of an object together."""


def metadata(found: Obj, path: str) -> Flaws:
    """Judge labels and annotations; the rest of the metadata comes from the job."""
    yield from labels(part(found, "labels"), f"{path}.labels")
    at = f"{path}.annotations"
    size = 0
    for key, value in part(found, "annotations").items():
        yield from each(at, key, names.qualified(key.lower()))
        size += len(key.encode()) + len(str(value).encode())
    if size > MOST_BYTES:
        yield Refusal(f"Too long: may not be more than {MOST_BYTES} bytes", at, "shorten the annotations")


def labels(found: Mapping[str, Any], path: str) -> Flaws:
    """Judge labels, or a selector that names labels and their values."""
    for key, value in found.items():
        yield from each(path, key, names.qualified(key))
        if isinstance(value, str):
            yield from each(path, value, names.label_value(value))
