"""Decode protobuf bytes into the JSON form of an object."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from volcano_py.apiserver.objects import Obj, decode
from volcano_py.apiserver.protobuf.messages import message_of, messages

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
Wire = int | bytes
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """The bytes are not a known object; the message says why."""


def decode_object(body: bytes) -> Obj:
    """The object in the body of a request; ProtobufError if it cannot be read."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("it does not begin as Kubernetes' protobuf does")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    api_version = kind = ""
    for number, value in _fields(_as_bytes(envelope.get(1, b""))):
        if number == 1:
            api_version = _as_bytes(value).decode()
        elif number == 2:
            kind = _as_bytes(value).decode()
    message = "meta/v1.DeleteOptions" if kind == "DeleteOptions" else message_of(api_version, kind)
    if message not in messages():
        raise ProtobufError(f"{api_version} {kind} is not known in this form: send JSON")
    return {"apiVersion": api_version, "kind": kind, **_message(_as_bytes(envelope.get(2, b"")), message)}


def _as_bytes(value: Wire) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a number where text or a message is expected")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """The fields of a message in the order of the wire."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        value: Wire
        if wire_type == _VARINT:
            value, at = _varint(data, at)
        elif wire_type == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ProtobufError(f"wire type {wire_type} is not used by Kubernetes")
        if at > end:
            raise ProtobufError("it ends in the middle of a field")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("it ends in the middle of a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _message(data: bytes, name: str) -> Obj:
    known = messages()[name]
    made: Obj = {}
    for number, wire in _fields(data):
        field = known.get(number)
        if field is None:
            raise ProtobufError(f"field {number} of {name} is not known: it is newer than this server; send JSON")
        if field.keyed:
            key, value = _entry(_as_bytes(wire), field.type)
            made.setdefault(field.name, {})[key] = value
        elif field.repeated:
            made.setdefault(field.name, []).append(_value(wire, field.type))
        else:
            value = _value(wire, field.type)
            if field.name == "-":
                made.update(value)
            elif field.optional or value not in ("", 0, None, {}):  # False equals 0
                made[field.name] = value
    return made


def _entry(data: bytes, kind: str) -> tuple[str, Any]:
    entry = dict(_fields(data))
    key = _as_bytes(entry.get(1, b"")).decode()
    return key, _value(entry[2], kind) if 2 in entry else _EMPTY.get(kind, "")


def _value(wire: Wire, kind: str) -> Any:
    reader = _READERS.get(kind)
    try:
        return reader(wire) if reader is not None else _message(_as_bytes(wire), kind)
    except (UnicodeDecodeError, msgspec.DecodeError, struct.error) as error:
        raise ProtobufError(f"a {kind} cannot be read: {error}") from error


def _integer(wire: Wire) -> int:
    if not isinstance(wire, int):
        raise ProtobufError("text where a number is expected")
    return wire - (1 << 64) if wire >= 1 << 63 else wire


def _text(wire: Wire) -> str:
    return _as_bytes(wire).decode()


def _inner(wire: Wire, number: int, empty: Wire) -> Wire:
    return dict(_fields(_as_bytes(wire))).get(number, empty)


def _time(wire: Wire) -> str | None:
    inner = dict(_fields(_as_bytes(wire)))
    seconds, nanos = _integer(inner.get(1, 0)), _integer(inner.get(2, 0))
    if not seconds and not nanos:
        return None
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{nanos // 1000:06d}Z" if nanos else f"{text}Z"


def _int_or_string(wire: Wire) -> int | str:
    inner = dict(_fields(_as_bytes(wire)))
    return _text(inner.get(3, b"")) if inner.get(1) else _integer(inner.get(2, 0))


def _double(wire: Wire) -> float:
    value: float = struct.unpack("<d", _as_bytes(wire))[0]
    return value


_EMPTY: Mapping[str, Any] = {"int": 0, "bool": False}
_READERS: Mapping[str, Callable[[Wire], Any]] = {
    "string": _text,
    "int": _integer,
    "bool": lambda wire: bool(wire),
    "double": _double,
    "bytes": lambda wire: base64.b64encode(_as_bytes(wire)).decode(),
    "quantity": lambda wire: _text(_inner(wire, 1, b"")),
    "time": _time,
    "int-or-string": _int_or_string,
    "json": lambda wire: decode(_as_bytes(_inner(wire, 1, b"null")) or b"null"),
}
