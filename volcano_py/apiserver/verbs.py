"""What each verb does with a decoded request, and the bytes of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from volcano_py.apiserver import scale, subresources
from volcano_py.apiserver.deletion import DeleteOptions, Deletion, parse_options
from volcano_py.apiserver.drafts import Draft
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.apiserver.paging import ListOptions, Page, check_options, list_page, parse_version
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.requests import APPLY_PATCH, Call, applied, body_of, object_of, patch_function
from volcano_py.apiserver.resources import ServedVersion
from volcano_py.apiserver.routing import Target
from volcano_py.apiserver.selectors import both, field_matcher, label_matcher
from volcano_py.apiserver.status import (
    StatusError,
    bad_request,
    details_of,
    success,
)
from volcano_py.apiserver.store import Event, Stored
from volcano_py.apiserver.tables.forms import Form, form_for
from volcano_py.apiserver.watching import Watcher, bookmark, initial_lines
from volcano_py.apiserver.webhooks.chain import WebhookChain

_JSON = "application/json"
_BOUND = encode(success(code=201))
_TRUE = ("true", "1")
_STRICT, _WARN = "Strict", "Warn"


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
    """A streamed answer: its first bytes, and the watcher that delivers the rest (None: no more follows)."""

    first: Iterable[bytes]
    watcher: Watcher | None
    timeout_s: float
    bookmarks: bool


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
        if target.subresource == "scale":
            return self._scale(call)
        match target.verb:
            case "get":
                stored = self._registry.get(target.resource, target.namespace, target.name)
                form = _form(call)
                return Reply(200, stored.json(_served(target).prefix) if form is None else form.one(stored))
            case "list":
                return self._list(call)
            case "watch":
                return self._watch(call)
            case "create" | "update" | "patch":
                return self.written(self.draft(call))
            case "delete":
                return self._delete(call)
            case "deletecollection":
                return self._delete_collection(call)
        raise AssertionError(f"routing let verb {target.verb} through")

    async def perform_admitted(self, call: Call, webhooks: WebhookChain) -> Reply | WatchReply:
        """Carry out a write after its webhooks have been asked."""
        target = call.target
        if target.verb in ("create", "update", "patch"):
            return self.written(await webhooks.admit(lambda: self.draft(call), call))
        if target.verb == "delete":
            found = [self._registry.get(target.resource, target.namespace, target.name)]
        else:
            matcher = _list_options(call).matcher
            scanned = self._registry.collection(target.resource).scan(_prefix(target))
            found = [stored for stored in scanned if matcher is None or matcher(stored.obj)]
        warnings = await webhooks.admit_deletion(found, call, _delete_options(call).dry_run)
        reply = self.perform(call)
        if isinstance(reply, Reply):
            reply.warnings = warnings
        return reply

    def _context(self, call: Call) -> WriteContext:
        target, query = call.target, call.query
        return WriteContext(
            self._registry,
            version=target.version,
            subresource=target.subresource,
            dry_run=query.get("dryRun") == "All",
            from_outside=True,
            field_validation=_STRICT if call.content_type == APPLY_PATCH else query.get("fieldValidation") or _WARN,
            manager=call.manager,
        )

    def draft(self, call: Call) -> Draft:
        """Prepare the write of a create, update or patch."""
        target, context = call.target, self._context(call)
        resource, namespace, name = target.resource, target.namespace, target.name
        if target.verb == "create":
            return self._registry.draft_create(resource, namespace, object_of(call), context)
        if target.verb == "update":
            return self._registry.draft_update(resource, namespace, name, object_of(call), context)
        if call.content_type == APPLY_PATCH:
            config, applier = applied(call)
            return self._registry.draft_apply(resource, namespace, name, config, applier, context)
        return self._registry.draft_patch(resource, namespace, name, patch_function(call), context)

    def written(self, draft: Draft) -> Reply:
        """Store a draft and answer with the stored object."""
        target_version = draft.resource.versions[draft.context.version]
        stored = self._registry.commit(draft)
        return Reply(201 if draft.old is None else 200, stored.json(target_version.prefix), draft.context.warnings)

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
        timeout_s = options.timeout_s or self._options.watch_timeout_s * ORIGIN.get().random().uniform(1.0, 2.0)
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
            subresources.bind(self._registry, target.resource, namespace, target.name, object_of(call), dry_run)
        else:
            subresources.evict(self._registry, target.resource, namespace, target.name, object_of(call))
        return Reply(201, _BOUND)

    def _scale(self, call: Call) -> Reply:
        target = call.target
        stored = self._registry.get(target.resource, target.namespace, target.name)
        paths = _served(target).scale
        assert paths is not None, f"{target.counted_as} is served without paths"
        if target.verb != "get":
            current = scale.read(stored.obj, paths)
            asked = object_of(call) if target.verb == "update" else patch_function(call)(current)
            stored = self._registry.patch(
                target.resource, target.namespace, target.name, scale.change(asked, paths), self._context(call)
            )
        return Reply(200, encode(scale.read(stored.obj, paths)))


def _form(call: Call, watch: bool = False) -> Form | None:
    target = call.target
    return form_for(call.headers.get("Accept", ""), target.resource, _served(target), call.query, watch)


def _served(target: Target) -> ServedVersion:
    return target.resource.versions[target.version]


def _prefix(target: Target) -> str:
    return f"{target.namespace}/" if target.namespace else ""


def _delete_options(call: Call) -> DeleteOptions:
    body: object = {}
    if call.body:
        body = body_of(call, "DeleteOptions")
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


def _deleted(target: Target, deletion: Deletion) -> bytes:
    """The object if it still exists (or its kind returns it), otherwise a Status that names it."""
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
    """Items of a list name their type only for custom resources, as on a real API server."""
    if prefix is None:
        return [stored.body for stored in items]
    return [stored.json(prefix) for stored in items]
