"""Finds the definitions of PodGroup and Queue in a checkout or an installation."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import volcano_py

_PLACES = (
    Path(volcano_py.__file__).parent.parent / "manifests" / "crds",
    Path(sys.prefix) / "share" / "volcano-py" / "manifests" / "crds",
)


def definitions() -> Iterator[dict[str, Any]]:
    """Yield the CustomResourceDefinitions; raise FileNotFoundError that names the folders searched."""
    for place in _PLACES:
        files = sorted(place.glob("*.yaml"))
        if files:
            for file in files:
                yield from (entry for entry in yaml.safe_load_all(file.read_text()) if entry)
            return
    looked = " and ".join(map(str, _PLACES))
    raise FileNotFoundError(f"the definitions of PodGroup and Queue are in neither {looked}: is the checkout complete?")
