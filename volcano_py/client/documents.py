"""Objects from YAML files."""

from pathlib import Path
from typing import Any

import yaml

from volcano_py.client.problem import Problem, in_one_line
from volcano_py.kube.resource import Resource


def read_documents(path: str, kind: Resource, *, generated: bool = False) -> list[dict[str, Any]]:
    """Return the objects of a file; all of them must be of the kind."""
    if not path:
        raise Problem(f"the file with the {kind.plural} must be specified: --file FILE")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"file {path} cannot be read: {error.strerror}; check its name") from error
    except ValueError as error:
        raise Problem(f"file {path} is not text in UTF-8; name a YAML file") from error
    try:
        found = [one for one in yaml.load_all(text, Loader=_Plain) if one is not None]
    except yaml.YAMLError as error:
        raise Problem(f"file {path} is not YAML: {in_one_line(error)}") from error
    if not found:
        raise Problem(f"file {path} has no object; write a {kind.kind} of {kind.api_version} there")
    for one in found:
        _check(one, path, kind, generated=generated)
    return found


class _Plain(yaml.SafeLoader):
    """Leaves times as text, because JSON has none."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _check(obj: Any, path: str, kind: Resource, *, generated: bool) -> None:
    if not isinstance(obj, dict):
        raise Problem(
            f"file {path} has a document that is no {kind.kind}: it is no map with apiVersion, kind and metadata"
        )
    given = (obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind)
    if given != (kind.api_version, kind.kind):
        raise Problem(
            f"file {path} has a {given[1]} of {given[0]}; this command takes {kind.kind} of {kind.api_version}"
        )
    if not isinstance(obj.get("metadata"), dict):
        raise Problem(f"file {path} has a {kind.kind} without metadata; write metadata.name")
    names = [obj["metadata"].get(field) for field in ("name", *(("generateName",) if generated else ()))]
    if not any(isinstance(name, str) and name for name in names):
        raise Problem(f"file {path} has a {kind.kind} without a name; write metadata.name")
    obj.update(apiVersion=kind.api_version, kind=kind.kind)
