"""Decodes lists and watches into typed objects; an object that does not fit its type does not stop the others."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from volcano_py.api.answers import ListMeta, Status
from volcano_py.api.nesting import decoded, flattened
from volcano_py.kube import errors

T = TypeVar("T")

CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_MAX_VALUE = 200  # characters of an offending value in a message
_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_NULL = "got `null`"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Identity(msgspec.Struct, rename="camel", gc=False):
    """The metadata that identifies an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, gc=False):
    metadata: Identity = msgspec.field(default_factory=Identity)


class _BookmarkMetadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _BookmarkObject(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata


class WatchChange(msgspec.Struct, Generic[T], gc=False):
    """A line of a watch that says how one object changed."""

    type: str
    object: T


class _RawLine(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _TypedList(msgspec.Struct, Generic[T]):
    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


@dataclass(frozen=True, slots=True)
class Undecodable:
    """An object that does not fit its type: which one, what is wrong where, and its JSON."""

    identity: Identity
    field: str
    value: str
    problem: str
    raw: bytes
    type: str = ""
    """ADDED, MODIFIED or DELETED when it came from a watch."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A line of a watch that only carries the position it has reached."""

    resource_version: str
    initial_events_end: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list."""

    items: list[T]
    undecodable: list[Undecodable]
    resource_version: str
    continue_token: str


class MalformedLine(Exception):
    """A line of a watch is not the JSON of a watch event; the rest of the stream cannot be trusted."""


def decoder_for(into: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type, made once."""
    key: Any = into
    decoder: msgspec.json.Decoder[T] = _decoder(key)
    return decoder


@lru_cache(maxsize=256)
def _decoder(into: Any) -> Any:
    return msgspec.json.Decoder(into)


_RAW_LINE = msgspec.json.Decoder(_RawLine)
_RAW_LIST = msgspec.json.Decoder(_TypedList[msgspec.Raw])
_BOOKMARK = msgspec.json.Decoder(_BookmarkObject)
_ERROR_STATUS = msgspec.json.Decoder(Status)
_IDENTIFIED = msgspec.json.Decoder(_Identified)


class LineDecoder(Generic[T]):
    """Decodes the lines of a watch on objects of one type."""

    def __init__(self, into: type[T]) -> None:
        self._object = decoder_for(into)
        envelope: Any = WatchChange  # the type checker does not accept a type argument known only at run time
        self._decode: Any = msgspec.json.Decoder(envelope[into]).decode

    def decode(self, line: bytes) -> WatchChange[T] | Undecodable | Bookmark | Status:
        """Return what a line says; raise MalformedLine if it is not a line of a watch."""
        try:
            change: WatchChange[T] = decoded(self._decode, line)
        except msgspec.ValidationError:
            return self._decode_in_steps(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedLine(f"{error} in {line[:_MAX_VALUE]!r}") from error
        except Exception:  # noqa: BLE001 - a decoder may have bugs; step by step, one of them costs one object
            return self._decode_in_steps(line)
        # A bookmark or an error may happen to fit a lenient type.
        return change if change.type in CHANGES else self._decode_in_steps(line)

    def _decode_in_steps(self, line: bytes) -> WatchChange[T] | Undecodable | Bookmark | Status:
        try:
            envelope = decoded(_RAW_LINE.decode, line)
            if envelope.type == "BOOKMARK":
                metadata = _BOOKMARK.decode(envelope.object).metadata
                return Bookmark(metadata.resource_version, metadata.annotations.get(_INITIAL_EVENTS_END) == "true")
            if envelope.type == "ERROR":
                return _ERROR_STATUS.decode(envelope.object)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedLine(f"{error} in {line[:_MAX_VALUE]!r}") from error
        if envelope.type not in CHANGES:
            raise MalformedLine(f"unknown event type {envelope.type!r} in {line[:_MAX_VALUE]!r}")
        found = _decode_object(self._object, bytes(envelope.object), envelope.type)
        return found if isinstance(found, Undecodable) else WatchChange(envelope.type, found)


class PageDecoder(Generic[T]):
    """Decodes pages of lists of objects of one type."""

    def __init__(self, into: type[T]) -> None:
        self._object = decoder_for(into)
        envelope: Any = _TypedList
        self._decode: Any = msgspec.json.Decoder(envelope[into]).decode

    def decode(self, body: bytes, path: str) -> Page[T]:
        """Return the page; raise UnexpectedAnswer if it is not a list."""
        try:
            page = decoded(self._decode, body)
            return Page(page.items or [], [], page.metadata.resource_version, page.metadata.continue_)
        except msgspec.ValidationError:
            return self._decode_one_by_one(body, path)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise errors.UnexpectedAnswer("list", path, f"the answer is not a list: {error}") from error
        except Exception:  # noqa: BLE001 - a decoder may have bugs; one by one, one of them costs one object
            return self._decode_one_by_one(body, path)

    def _decode_one_by_one(self, body: bytes, path: str) -> Page[T]:
        try:
            page = decoded(_RAW_LIST.decode, body)
        except msgspec.DecodeError as error:
            raise errors.UnexpectedAnswer("list", path, f"the answer is not a list: {error}") from error
        items: list[T] = []
        undecodable: list[Undecodable] = []
        for raw in page.items or []:
            found = _decode_object(self._object, bytes(raw))
            if isinstance(found, Undecodable):
                undecodable.append(found)
            else:
                items.append(found)
        return Page(items, undecodable, page.metadata.resource_version, page.metadata.continue_)


def _decode_object(decoder: msgspec.json.Decoder[T], raw: bytes, change: str = "") -> T | Undecodable:
    try:
        return decoded(decoder.decode, raw)
    except Exception as error:  # noqa: BLE001 - whatever a decoder raises, the object cannot be read
        problem = str(error) or type(error).__name__
    if _NULL in problem and (found := _decoded_like_go(decoder, raw)) is not None:
        return found
    path = _PATH.search(problem)
    field = path["path"].removeprefix(".") if path else ""
    return Undecodable(
        identity=_identify(raw),
        field=field,
        value=_value_at(raw, path["path"]) if path else "",
        problem=_PATH.sub("", problem),
        raw=raw,
        type=change,
    )


def _decoded_like_go(decoder: msgspec.json.Decoder[T], raw: bytes) -> T | None:
    """Decode JSON as programs in Go do: null is the same as a field that is left out. Return None if it does not fit.

    Go writes an empty list as null unless its type says otherwise, for example `status.images[].names` of a node.
    """
    try:
        return decoder.decode(msgspec.json.encode(_dropping_nulls(msgspec.json.decode(flattened(raw)))))
    except (msgspec.DecodeError, msgspec.EncodeError, UnicodeError, OverflowError):
        return None  # what was wrong at first is reported


def _dropping_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _dropping_nulls(one) for name, one in value.items() if one is not None}
    return [_dropping_nulls(one) for one in value] if isinstance(value, list) else value


def _identify(raw: bytes) -> Identity:
    try:
        return decoded(_IDENTIFIED.decode, raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Identity()  # its metadata is broken, too: it can be reported but not tracked


def _value_at(raw: bytes, path: str) -> str:
    """Return the value at a path of a decoding error as short JSON.

    The path does not name the keys of a map; for a value inside a map, the whole map is returned.
    """
    try:
        value: Any = decoded(msgspec.json.decode, raw)
        for step in _STEP.finditer(path):
            if step["field"]:
                value = value[step["field"]]
            elif step["index"]:
                value = value[int(step["index"])]
            else:
                break
        text = msgspec.json.encode(value).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return ""  # the path is enough to find the place
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
