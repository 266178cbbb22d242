"""Finds the definitions of custom resources, and the webhook configurations, in a checkout or an installation."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

import volcano_py

_PLACES = (
    Path(volcano_py.__file__).parent.parent / "manifests",
    Path(sys.prefix) / "share" / "volcano-py" / "manifests",
)
_YAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMENT = re.compile(r"\A(#[^\n]*\n)*")


def definitions() -> Iterator[dict[str, Any]]:
    """Yield the CustomResourceDefinitions; raise FileNotFoundError that names the folders searched."""
    return _objects("crds/*.yaml", "definitions of custom resources")


def webhook_configurations() -> Iterator[dict[str, Any]]:
    """Yield the webhook configurations without their conditions, which the embedded API server cannot evaluate.

    Raises FileNotFoundError that names the folders searched. Without conditions, more is asked than need be.
    """
    for configuration in _objects("webhooks/configurations.yaml", "webhook configurations"):
        for webhook in configuration["webhooks"]:
            webhook.pop("matchConditions", None)
        yield configuration


def _objects(pattern: str, what: str) -> Iterator[dict[str, Any]]:
    for place in _PLACES:
        files = sorted(place.glob(pattern))
        if files:
            for file in files:
                yield from _read(file.read_text())
            return
    looked = " and ".join(map(str, _PLACES))
    raise FileNotFoundError(f"the {what} are in neither {looked}: is the checkout complete?")


def _read(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file. The longest files are JSON below a comment; that takes 7 ms, as YAML it is 310."""
    body = _COMMENT.sub("", text)
    if body.startswith("{"):
        yield msgspec.json.decode(body)
    else:
        yield from (entry for entry in yaml.load_all(body, _YAML) if entry)
