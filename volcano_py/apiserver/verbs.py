"""What each verb does with a decoded request, and the bytes it answers with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from volcano_py.apiserver import subresources
from volcano_py.apiserver.deletion import DeleteOptions, Deletion, parse_options
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj, decode, encode
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.paging import ListOptions, Page, check_options, list_page, parse_version
from volcano_py.apiserver.patches import json_patch, merge_patch
from volcano_py.apiserver.registry import PatchFunction, Registry
from volcano_py.apiserver.resources import Resource, ServedVersion
from volcano_py.apiserver.routing import Target
from volcano_py.apiserver.selectors import both, field_matcher, label_matcher
from volcano_py.apiserver.status import (
    StatusError,
    bad_request,
    details_of,
    success,
    unsupported_media_type,
)
from volcano_py.apiserver.store import Event, Stored
from volcano_py.apiserver.strategic import strategic_merge
from volcano_py.apiserver.tables.forms import Form, form_for
from volcano_py.apiserver.watching import Watcher, bookmark, initial_lines

_JSON = "application/json"
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_BOUND = encode(success(code=201))
_TRUE = ("true", "1")


@dataclass(slots=True)
class Reply:
    """A finished answer."""

    code: int
    body: bytes
    warnings: list[str] | None = None
    content_type: str = _JSON
    retry_after_s: int | None = None


@dataclass(slots=True)
class WatchReply:
    """An answer that goes on: what is sent first, and the watcher that brings the rest (None: nothing more)."""

    first: Iterable[bytes]
    watcher: Watcher | None
    timeout_s: float
    bookmarks: bool


@dataclass(slots=True)
class Call:
    """One request, decoded as far as every verb needs it."""

    target: Target
    query: Mapping[str, str]
    body: bytes
    content_type: str
    accept: str = _JSON
    user_agent: str = ""


class Verbs:
    """Carries out requests. Every method is synchronous."""

    def __init__(self, registry: Registry, options: ApiServerOptions) -> None:
        self._registry = registry
        self._options = options

    def perform(self, call: Call) -> Reply | WatchReply:
        """Carry out one request; StatusError when it is refused."""
        target = call.target
        if target.subresource in ("binding", "eviction"):
            return self._pod_action(call)
        match target.verb:
            case "get":
                stored = self._registry.get(target.resource, target.namespace, target.name)
                form = _form(call)
                return Reply(200, stored.json(_served(target).prefix) if form is None else form.one(stored))
            case "list":
                return self._list(call)
            case "watch":
                return self._watch(call)
            case "create":
                return self._create(call)
            case "update":
                return self._update(call)
            case "patch":
                return self._patch(call)
            case "delete":
                return self._delete(call)
            case "deletecollection":
                return self._delete_collection(call)
        raise AssertionError(f"routing let verb {target.verb} through")

    def _context(self, call: Call) -> WriteContext:
        target, query = call.target, call.query
        return WriteContext(
            self._registry,
            version=target.version,
            subresource=target.subresource,
            dry_run=query.get("dryRun") == "All",
            strict_fields=query.get("fieldValidation") == "Strict",
        )

    def _create(self, call: Call) -> Reply:
        target, context = call.target, self._context(call)
        stored = self._registry.create(target.resource, target.namespace, _object(call), context)
        return Reply(201, stored.json(_served(target).prefix), context.warnings)

    def _update(self, call: Call) -> Reply:
        target, context = call.target, self._context(call)
        stored, created = self._registry.update(target.resource, target.namespace, target.name, _object(call), context)
        return Reply(201 if created else 200, stored.json(_served(target).prefix), context.warnings)

    def _patch(self, call: Call) -> Reply:
        target, context = call.target, self._context(call)
        change = _patch_function(target.resource, call)
        stored = self._registry.patch(target.resource, target.namespace, target.name, change, context)
        return Reply(200, stored.json(_served(target).prefix), context.warnings)

    def _delete(self, call: Call) -> Reply:
        target = call.target
        deletion = self._registry.delete(target.resource, target.namespace, target.name, _delete_options(call))
        return Reply(200, _deleted(target, deletion))

    def _delete_collection(self, call: Call) -> Reply:
        target = call.target
        matcher = _list_options(call).matcher
        found = self._registry.delete_collection(target.resource, target.namespace, _delete_options(call), matcher)
        return Reply(200, _list_body(target, Page(found, self._registry.store.rv)))

    def _list(self, call: Call) -> Reply:
        target = call.target
        collection = self._registry.collection(target.resource)
        form = _form(call)
        page = list_page(collection, self._registry.store.rv, _prefix(target), _list_options(call))
        if form is not None:
            return Reply(200, form.many(page.items, _list_meta(page)))
        return Reply(200, _list_body(target, page))

    def _watch(self, call: Call) -> WatchReply:
        target, options = call.target, _list_options(call)
        check_options(options, watch=True)
        form = _form(call, watch=True)
        render = None if form is None else form.one
        collection = self._registry.collection(target.resource)
        served, prefix = _served(target), _prefix(target)
        store = self._registry.store
        timeout_s = options.timeout_s or self._options.watch_timeout_s * random.uniform(1.0, 2.0)
        starts_now = options.version in ("", "0") or options.send_initial_events
        first: Iterable[bytes] = ()
        events: list[Event] = []
        if starts_now:
            items = list_page(collection, store.rv, prefix, ListOptions(matcher=options.matcher)).items
            first = initial_lines(items, served.prefix, render)
            if options.bookmarks and (options.send_initial_events or not options.version):
                end = bookmark(served.api_version, target.resource.kind, store.rv, end_of_initial=True)
                first = [*first, end]
        else:
            try:
                events = collection.events_after(parse_version(options.version))
            except StatusError as error:
                if error.code == 400:
                    raise StatusError(500, "", error.message) from error  # what a real API server answers
                raise
        limit = max(self._options.watch_queue_limit, 2 * len(events))
        watcher = Watcher(collection, prefix, options.matcher, limit, served.prefix, render)
        for event in events:
            watcher.offer(event)
        return WatchReply(first, watcher, timeout_s, options.bookmarks)

    def _pod_action(self, call: Call) -> Reply:
        target = call.target
        namespace = target.namespace or ""
        if target.subresource == "binding":
            dry_run = call.query.get("dryRun") == "All"
            subresources.bind(self._registry, target.resource, namespace, target.name, _object(call), dry_run)
        else:
            subresources.evict(self._registry, target.resource, namespace, target.name, _object(call))
        return Reply(201, _BOUND)


def _form(call: Call, watch: bool = False) -> Form | None:
    target = call.target
    return form_for(call.accept, target.resource, _served(target), call.query, watch)


def _served(target: Target) -> ServedVersion:
    return target.resource.versions[target.version]


def _prefix(target: Target) -> str:
    return f"{target.namespace}/" if target.namespace else ""


def _object(call: Call) -> Obj:
    if call.content_type not in (_JSON, ""):
        raise unsupported_media_type((_JSON,))
    body = _decoded(call.body, f"the object provided is unrecognized (must be of type {call.target.resource.kind})")
    if not isinstance(body, dict):
        kind = call.target.resource.kind
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): it is no JSON object")
    return body


def _decoded(body: bytes, what: str) -> object:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"{what}: couldn't get version/kind; json parse error: {error}") from error


def _delete_options(call: Call) -> DeleteOptions:
    body: object = {}
    if call.body:
        if call.content_type not in (_JSON, ""):
            raise unsupported_media_type((_JSON,))
        body = _decoded(call.body, "DeleteOptions")
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions: it must be an object")
    return parse_options(body, dict(call.query))


def _list_options(call: Call) -> ListOptions:
    query = call.query
    if not query:
        return ListOptions()
    labels = label_matcher(query["labelSelector"]) if query.get("labelSelector") else None
    fields = None
    if query.get("fieldSelector"):
        fields = field_matcher(query["fieldSelector"], call.target.resource.fields)
    return ListOptions(
        limit=_number(query, "limit"),
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        version_match=query.get("resourceVersionMatch", ""),
        send_initial_events=query.get("sendInitialEvents") in _TRUE,
        bookmarks=query.get("allowWatchBookmarks") in _TRUE,
        timeout_s=float(_number(query, "timeoutSeconds")) or None,
        matcher=both(labels, fields),
    )


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"{name}={text} is not a whole number") from None


def _patch_function(resource: Resource, call: Call) -> PatchFunction:
    accepted = (_JSON_PATCH, _MERGE) if resource.custom else (_JSON_PATCH, _MERGE, _STRATEGIC)
    if call.content_type not in accepted:
        raise unsupported_media_type(accepted)
    try:
        patch = decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if call.content_type == _JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
        operations: list[object] = patch
        return lambda current: json_patch(current, operations)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    document: Obj = patch
    if call.content_type == _MERGE:
        return lambda current: merge_patch(current, document)
    return lambda current: strategic_merge(current, document)


def _deleted(target: Target, deletion: Deletion) -> bytes:
    """The object while it lives on (and for kinds that return it), otherwise a Status that names it."""
    stored, resource = deletion.stored, target.resource
    if resource.strategy.returns_deleted or not deletion.gone:
        return stored.json(_served(target).prefix)
    meta = stored.obj["metadata"]
    details = details_of(resource.group, resource.plural, meta["name"])
    return encode(success({**details, "uid": meta["uid"]}))


def _list_body(target: Target, page: Page) -> bytes:
    resource, served = target.resource, _served(target)
    head = encode({"kind": resource.list_kind, "apiVersion": served.api_version, "metadata": _list_meta(page)})
    items = _item_bodies(page.items, served.prefix if resource.custom else None)
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(items))


def _list_meta(page: Page) -> Obj:
    meta: Obj = {"resourceVersion": str(page.rv)}
    if page.token:
        meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta


def _item_bodies(items: list[Stored], prefix: bytes | None) -> list[bytes]:
    """Items of a list name their type only where the resource is a custom one, as on a real API server."""
    if prefix is None:
        return [stored.body for stored in items]
    return [stored.json(prefix) for stored in items]
