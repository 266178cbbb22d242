"""LIST: which objects, at which version, and the tokens by which a client continues.

A continue token holds a version and a key; the server keeps no state for it. A later page is computed from the
current objects by undoing the events since that version. If those events are forgotten, the answer is 410 Expired.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from volcano_py.apiserver.objects import decode, encode
from volcano_py.apiserver.selectors import Matcher
from volcano_py.apiserver.status import (
    StatusError,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    too_large_version,
    unsupported_value,
)
from volcano_py.apiserver.store import Collection, Stored

_TOO_OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1  # the version in a token that continues with current objects


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list or watch asks for, read from its query."""

    limit: int = 0
    token: str = ""
    version: str = ""
    version_match: str = ""
    send_initial_events: bool = False
    bookmarks: bool = False
    timeout_s: float | None = None
    matcher: Matcher | None = None
    """Label and field selectors together."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page: objects, the version they are consistent at, and where to continue."""

    items: list[Stored]
    rv: int
    token: str = ""
    remaining: int | None = None


def parse_version(text: str) -> int:
    """A resourceVersion of a request; 400 when it is not a number."""
    if not text.isdecimal():
        raise bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": it must be a whole number'
        )
    return int(text)


def check_options(options: ListOptions, watch: bool) -> None:
    """Combinations that the API refuses with 422."""
    errors = []
    match = options.version_match
    if match and not (options.version or options.send_initial_events):
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        errors.append(forbidden_field("resourceVersionMatch", detail))
    elif match not in ("", "Exact", "NotOlderThan"):
        errors.append(unsupported_value("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
    elif match == "Exact" and options.version == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        errors.append(forbidden_field("resourceVersionMatch", detail))
    if options.send_initial_events:
        if not watch:
            errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        elif match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden_field("resourceVersionMatch", detail))
    if errors:
        raise invalid("meta.k8s.io", "ListOptions", "", errors)


def list_page(collection: Collection, current: int, prefix: str, options: ListOptions) -> Page:
    """The page that the options ask for, of the objects whose key starts with `prefix`."""
    check_options(options, watch=False)
    if options.token:
        rv, found = _continued(collection, current, prefix, options)
    elif options.version_match == "Exact":
        rv = parse_version(options.version)
        found = collection.scan_at(rv, prefix)
    else:
        rv, found = current, collection.scan(prefix)
        if options.version and (asked := parse_version(options.version)) > current:
            raise too_large_version(asked, current)
    matcher = options.matcher
    if matcher is not None:
        found = (stored for stored in found if matcher(stored.obj))
    if options.limit <= 0:
        return Page(list(found), rv)
    items = list(islice(found, options.limit))
    if matcher is not None:
        rest = int(next(found, None) is not None)
    elif items and collection.unchanged_since(rv):
        rest = collection.count(prefix, items[-1].key)  # counting the rest at every page would be quadratic
    else:
        rest = sum(1 for _ in found)
    if not rest:
        return Page(items, rv)
    token = _make_token(rv, items[-1].key.removeprefix(prefix))
    return Page(items, rv, token, rest if matcher is None else None)


def _continued(collection: Collection, current: int, prefix: str, options: ListOptions) -> tuple[int, Iterator[Stored]]:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    rv, start = _read_token(options.token)
    after = prefix + start
    if rv == _INCONSISTENT:
        return current, collection.scan(prefix, after)
    try:
        return rv, collection.scan_at(rv, prefix, after, _TOO_OLD_TOKEN)
    except StatusError as error:
        if error.code != 410:
            raise
        gone = expired(_TOO_OLD_TOKEN)
        gone.continue_token = _make_token(_INCONSISTENT, start)
        raise gone from error


def _make_token(rv: int, key: str) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": rv, "start": f"/{key}\0"}
    return base64.urlsafe_b64encode(encode(token)).decode().rstrip("=")


def _read_token(text: str) -> tuple[int, str]:
    try:
        token = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        rv, start = token["rv"], token["start"]
        if not isinstance(rv, int) or not isinstance(start, str):
            raise TypeError("a token holds a version and a key")
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return rv, start.lstrip("/").removesuffix("\0")
