"""Custom resources: how their objects are written, and the `Resource` made from a definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from volcano_py.apiserver.crds import schema as schemas
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.resources import META_FIELDS, Resource, ScalePaths, ServedVersion, served_version
from volcano_py.apiserver.selectors import path_getter
from volcano_py.apiserver.status import FieldError


@dataclass(frozen=True, slots=True)
class VersionRules:
    """What one version of a definition says about its objects."""

    schema: Obj
    has_status: bool


@dataclass(frozen=True, slots=True)
class CustomStrategy(Strategy):
    """How objects of a definition are written: pruned, defaulted and validated by the version they come in."""

    has_generation: bool = True
    unconditional_update: bool = False
    rules: Mapping[str, VersionRules] = field(default_factory=dict)

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Prune, then default; a status is dropped where it has a subresource of its own."""
        rules = self.rules[context.version]
        if rules.has_status:
            obj.pop("status", None)
        self._shape(obj, rules, context)

    def prepare_update(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """The main resource keeps the status; the status subresource keeps everything else, metadata included."""
        rules = self.rules[context.version]
        if context.subresource == "status":
            made = {**old, "metadata": dict(old["metadata"])}
            if "status" in obj:
                made["status"] = obj["status"]
            else:
                made.pop("status", None)
            obj = made
        elif rules.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        self._shape(obj, rules, context)
        return obj

    def _shape(self, obj: Obj, rules: VersionRules, context: WriteContext) -> None:
        context.report_unknown(schemas.prune(obj, rules.schema), str(obj["kind"]))
        schemas.apply_defaults(obj, rules.schema)

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Validate by the schema."""
        return schemas.validate(obj, self.rules[context.version].schema)

    def bumps_generation(self, obj: Obj, old: Obj) -> bool:
        """With a status subresource, only changes outside the status count."""
        apart = any(rules.has_status for rules in self.rules.values())
        skipped = {"metadata", "kind", "apiVersion"} | ({"status"} if apart else set())
        return any(obj.get(key) != old.get(key) for key in (obj.keys() | old.keys()) - skipped)


def _scale(paths: Obj | None) -> ScalePaths | None:
    if not paths:
        return None
    return ScalePaths(
        paths.get("specReplicasPath", ""), paths.get("statusReplicasPath", ""), paths.get("labelSelectorPath", "")
    )


def custom_resource(definition: Obj) -> Resource:
    """The resource that a definition describes."""
    spec = definition["spec"]
    group, names = spec["group"], spec["names"]
    versions: dict[str, ServedVersion] = {}
    rules: dict[str, VersionRules] = {}
    storage = None
    for version in spec["versions"]:
        subresources = frozenset(version.get("subresources") or ())
        served = served_version(
            group,
            version["name"],
            names["kind"],
            subresources,
            tuple(version.get("additionalPrinterColumns") or ()),
            _scale((version.get("subresources") or {}).get("scale")),
        )
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        rules[version["name"]] = VersionRules(schema, "status" in subresources)
        if version.get("served"):
            versions[version["name"]] = served
        if version.get("storage"):
            storage = served
    assert storage is not None, f"definition {definition['metadata']['name']} was admitted without storage version"
    selectable = [
        item["jsonPath"].removeprefix(".")
        for version in spec["versions"]
        for item in version.get("selectableFields") or ()
    ]
    return Resource(
        group=group,
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        storage=storage,
        versions=versions,
        strategy=CustomStrategy(has_status=False, rules=rules),
        singular=names["singular"],
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        fields={**META_FIELDS, **{path: path_getter(path) for path in selectable}},
        custom=True,
    )
