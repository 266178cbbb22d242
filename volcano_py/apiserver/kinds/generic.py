"""The write rules that every kind shares, and the methods by which a kind adds its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from volcano_py.apiserver.kinds.conform import Shape, conform
from volcano_py.apiserver.metadata import NameRule, subdomain_rule
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import FieldError, bad_request


class Reader(Protocol):
    """What admission may look up: current objects, by collection."""

    def peek(self, collection: str, key: str) -> Obj | None:
        """One object, or None."""

    def objects(self, collection: str) -> Iterable[Obj]:
        """All objects of a collection."""


@dataclass(slots=True)
class WriteContext:
    """What a write knows besides the object: the API version of the request, and where warnings go."""

    reader: Reader
    version: str = ""
    subresource: str = ""
    dry_run: bool = False
    from_outside: bool = False
    """The object came in a request, so unknown fields must be found."""
    field_validation: str = "Warn"
    """What happens to unknown fields: Strict refuses them, Warn and Ignore drop them."""
    manager: Callable[[], str] | None = None
    """The writer's name in `metadata.managedFields`; used only where owners are recorded."""
    managed_fields: list[Obj] | None = None
    """The owners after this write, if the writer has computed them (server-side apply)."""
    warnings: list[str] = field(default_factory=list)

    def report_unknown(self, paths: Iterable[str], kind: str) -> None:
        """Warn about fields that a kind does not have; 400 if the request asks for strict validation."""
        unknown = [f'unknown field "{path}"' for path in paths]
        if unknown and self.field_validation == "Strict":
            what = f'{kind} in version "{self.version}" cannot be handled as a {kind}'
            raise bad_request(f"{what}: strict decoding error: {', '.join(unknown)}")
        if self.field_validation != "Ignore":
            self.warnings.extend(unknown)


@dataclass(frozen=True, slots=True)
class Strategy:
    """How objects of one kind are written. Subclasses override what differs.

    `default` and `admit` may change the object they are given; it belongs to the write. `validate` changes nothing.
    """

    shape: Shape | None = None
    """Types of fields; an object that does not conform is a bad request."""
    name_rule: NameRule = subdomain_rule
    has_generation: bool = False
    has_status: bool = False
    """There is a status subresource: writes of the main resource do not change the status."""
    keeps_status_on_create: bool = False
    unconditional_update: bool = True
    """A PUT without resourceVersion is allowed and overwrites whatever is there."""
    create_on_update: bool = False
    """A PUT of a name that does not exist creates it."""
    deletion_finalizers: tuple[str, ...] = ()
    """Finalizers that the server itself puts on an object when its deletion begins."""
    returns_deleted: bool = False
    """DELETE answers with the object, not with a Status."""

    def check_shape(self, obj: Obj) -> None:
        """Refuse an object whose fields have the wrong types, before anything reads them."""
        if self.shape is not None:
            conform(obj, self.shape)

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Bring a new object into the form in which it is stored: reset, default, admit."""
        if self.has_status and not self.keeps_status_on_create:
            obj.pop("status", None)
        self.default(obj, context)
        self.admit(obj, context)

    def prepare_update(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """Bring a new revision into the form in which it is stored; the result may be another object."""
        if context.subresource == "status":
            return self.take_status(obj, old, context)
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        self.default(obj, context)
        return obj

    def take_status(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """The old object with the status (and metadata) of the new one."""
        made = {**old, "metadata": obj["metadata"]}
        if old["metadata"].get("ownerReferences"):
            made["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
        if "status" in obj:
            made["status"] = obj["status"]
        else:
            made.pop("status", None)
        return made

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in defaults."""

    def admit(self, obj: Obj, context: WriteContext) -> None:
        """Admission of a new object; raises StatusError to refuse it."""

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Return what is wrong with the object itself."""
        return []

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """Return what is wrong with the change from `old`."""
        return []

    def bumps_generation(self, obj: Obj, old: Obj) -> bool:
        """Whether the desired state changed: anything but metadata (and the status, if it is a subresource)."""
        skipped = (
            ("metadata", "status", "kind", "apiVersion") if self.has_status else ("metadata", "kind", "apiVersion")
        )
        keys = (obj.keys() | old.keys()).difference(skipped)
        return any(obj.get(key) != old.get(key) for key in keys)

    def grace_seconds(self, obj: Obj, asked: int | None) -> int | None:
        """How long a deleted object may take to terminate; None for kinds that are removed at once."""
        return None
