"""HTTP in front of the registry: read the request, apply faults, carry it out, write the answer."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from urllib.parse import parse_qsl

from aiohttp import web

from volcano_py.apiserver import documents
from volcano_py.apiserver.counters import RequestCounters
from volcano_py.apiserver.faults import Fault, Faults
from volcano_py.apiserver.objects import encode
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.requests import Call
from volcano_py.apiserver.routing import Target, UnknownGroup, route
from volcano_py.apiserver.status import StatusError, unauthorized
from volcano_py.apiserver.verbs import Reply, Verbs, WatchReply
from volcano_py.apiserver.watching import error_line, stream
from volcano_py.apiserver.webhooks.chain import WebhookChain

log = logging.getLogger(__name__)

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_PAGE_NOT_FOUND = Reply(404, b"404 page not found\n", content_type=_TEXT)
_HEALTHY = Reply(200, b"ok", content_type=_TEXT)
_HEALTH_PATHS = frozenset({"/healthz", "/readyz", "/livez"})
_FAILED = "request failed: %s %s %s"
_READ_STALL_S = 30.0
_WRITE_STALL_S = 60.0  # a client that reads no byte for this long is gone
_EMPTY: Mapping[str, str] = {}


class Frontend:
    """Handles HTTP requests of one server."""

    def __init__(
        self, registry: Registry, faults: Faults, counters: RequestCounters, options: ApiServerOptions
    ) -> None:
        self._registry = registry
        self._faults = faults
        self._counters = counters
        self._options = options
        self._verbs = Verbs(registry, options)
        self._webhooks = WebhookChain(registry)
        self._token = f"Bearer {options.token}".encode() if options.token else None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path, query_string = request.rel_url.raw_path, request.rel_url.raw_query_string
        try:
            if self._token is not None and not self._authorized(request):
                raise unauthorized()
            if path in _HEALTH_PATHS:
                return _respond(_HEALTHY)
            query = dict(parse_qsl(query_string, keep_blank_values=True)) if query_string else _EMPTY
            try:
                target = route(self._registry.resources, request.method, path, query)
            except (UnknownGroup, StatusError):
                document = documents.answer(
                    self._registry.resources, request.method, path, request.host, request.headers.get("Accept", "")
                )
                if document is None:
                    raise
                return _respond(document)
        except UnknownGroup:
            return _respond(_PAGE_NOT_FOUND)
        except StatusError as error:
            return _respond(_failure(error))
        try:
            async with asyncio.timeout(_READ_STALL_S):
                body = await request.read() if request.body_exists else b""
        except TimeoutError:
            return _respond(_failure(StatusError(408, "Timeout", "the body of the request did not arrive in time")))
        content_type = request.content_type if body and "Content-Type" in request.headers else ""
        call = Call(target, query, body, content_type, request.headers)
        return await self._serve(request, call)

    def _authorized(self, request: web.BaseRequest) -> bool:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, self._token or b"")

    async def _serve(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        target = call.target
        fault = self._faults.match(target.verb, target.counted_as, target.namespace or "", target.name)
        if fault is not None:
            if fault.action == "delay":
                await asyncio.sleep(fault.delay_s)
            elif fault.action == "drop_before":
                return _drop(request)
        reply = await self._admitted(call, fault) if self._webhooks.concerns(call) else self._perform(call, fault)
        if isinstance(reply, WatchReply):
            self._counters.add(target.verb, target.counted_as, 200)
            return await self._stream(request, target, reply, fault)
        self._counters.add(target.verb, target.counted_as, reply.code)
        if fault is not None and fault.action == "drop_after":
            return _drop(request)
        return _respond(reply)

    async def _admitted(self, call: Call, fault: Fault | None) -> Reply | WatchReply:
        """Carry out a write after the webhooks have been asked about it."""
        try:
            if fault is not None and fault.action == "reply":
                raise fault.error()
            return await self._verbs.perform_admitted(call, self._webhooks)
        except StatusError as error:
            return _failure(error)
        except Exception as error:
            log.exception(_FAILED, call.target.verb, call.target.counted_as, call.target.name)
            return _crash(error)

    async def close(self) -> None:
        """Close connections to webhooks."""
        await self._webhooks.close()

    def _perform(self, call: Call, fault: Fault | None) -> Reply | WatchReply:
        try:
            if fault is not None and fault.action == "reply":
                raise fault.error()
            return self._verbs.perform(call)
        except StatusError as error:
            if error.code == 410 and call.target.verb == "watch":  # a watch gets its warnings in its stream
                return WatchReply((error_line(error),), None, 0.0, False)
            return _failure(error)
        except Exception as error:
            log.exception(_FAILED, call.target.verb, call.target.counted_as, call.target.name)
            return _crash(error)

    async def _stream(
        self, request: web.BaseRequest, target: Target, reply: WatchReply, fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        watcher = reply.watcher
        if watcher is not None and fault is not None:
            if fault.action == "duplicate_events":
                watcher.duplicate(fault.events)
            elif fault.action == "disconnect":
                watcher.close()
        try:
            if watcher is not None:
                watcher.on_abort = lambda: _abort(request)
            await response.prepare(request)
            for chunk in reply.first:
                await _write(response, chunk)
            if watcher is not None:
                served = target.resource.versions[target.version]
                chunks = stream(
                    watcher,
                    self._registry.store,
                    served.api_version,
                    target.resource.kind,
                    timeout_s=reply.timeout_s,
                    bookmark_s=self._options.bookmark_interval_s if reply.bookmarks else None,
                )
                async for chunk in chunks:
                    await _write(response, chunk)
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            log.debug("watch client is gone: %s", target.counted_as)
        finally:
            if watcher is not None:
                watcher.close()
        return response


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    async with asyncio.timeout(_WRITE_STALL_S):
        await response.write(chunk)


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _drop(request: web.BaseRequest) -> web.Response:
    """Close the connection without an answer; the response returned goes nowhere."""
    _abort(request)
    return web.Response(status=500)


def _failure(error: StatusError) -> Reply:
    return Reply(
        error.code, encode(error.to_status()), warnings=error.warnings or None, retry_after_s=error.retry_after_s
    )


def _crash(error: Exception) -> Reply:
    return _failure(StatusError(500, "InternalError", f"Internal error occurred: {error!r}"))


def _respond(reply: Reply) -> web.Response:
    headers = {"Content-Type": reply.content_type}
    response = web.Response(status=reply.code, body=reply.body, headers=headers)
    if reply.retry_after_s is not None:
        response.headers["Retry-After"] = str(reply.retry_after_s)
    for warning in reply.warnings or ():
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response
