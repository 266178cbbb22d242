"""The HTTPS server of the webhooks: it reads reviews within bounds, and answers each of them."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

import structlog

from volcano_py.admission.contract import Request, Verdict
from volcano_py.admission.http_server import Answer, Application, Bounds, HttpServer, Question, turned_away
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.paths import WEBHOOKS, Webhook
from volcano_py.admission.reviews import Malformed, Review, answered, read_review, refused
from volcano_py.kube import errors
from volcano_py.runtime.http import AddressInUse

log = structlog.get_logger()

Judge = Callable[[Webhook, Request, bool], Verdict | Awaitable[Verdict]]
"""Gets the webhook, the request, and whether it is a dry run; returns an awaitable where it must wait."""

_JSON: Final = "application/json"
_MARGIN_S: Final = 0.2  # an answer must reach the API server before it gives up
_SHORTEST_S: Final = 0.5
_INTERNAL: Final = 500


@dataclass(frozen=True, slots=True)
class ServerOptions(Bounds):
    """Address and bounds of the server."""

    host: str = ""
    port: int = 8443
    answer_timeout_s: float = 10.0
    """For a verdict; the API server may ask for less."""


class ReviewServer:
    """Serves the webhooks; `start`, then `retire` and `close`."""

    def __init__(
        self,
        judge: Judge,
        paths: Iterable[str],
        tls: ssl.SSLContext,
        metrics: AdmissionMetrics,
        options: ServerOptions | None = None,
    ) -> None:
        self._judge, self._metrics = judge, metrics
        self._options = options or ServerOptions()
        self._webhooks = {path: WEBHOOKS[path] for path in paths}
        application = Application(self._refusal, self._handle, metrics.turned_away)
        self._http = HttpServer(application, tls, self._options)

    @property
    def port(self) -> int:
        """The port it listens on, also when 0 asked for a free one."""
        return self._http.port

    @property
    def under_way(self) -> int:
        """How many requests are being read or answered."""
        return self._http.under_way

    async def start(self) -> None:
        """Begin to listen; raise AddressInUse if the address cannot be had."""
        options = self._options
        try:
            await self._http.start(options.host or None, options.port)
        except OSError as error:
            text = f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another --port"
            raise AddressInUse(text) from error

    def retire(self) -> None:
        """Go on answering, but end every connection after its next answer, so that clients look for another server."""
        self._http.retire()

    async def close(self, patience_s: float) -> None:
        """Accept nothing more, complete what is under way within a time, close all connections."""
        if cut_off := await self._http.close(patience_s):
            log.warning("reviews are cut off at the end", reviews=cut_off)

    def _refusal(self, question: Question) -> Answer | None:
        """Refuse what is no review before its body is read."""
        path = question.target.partition("?")[0]
        if path not in self._webhooks:
            return turned_away(404, f"nothing is served at {path}")
        if question.method != "POST":
            return turned_away(405, f"send a POST, not a {question.method}")
        if question.content_type != _JSON:
            return turned_away(415, f"send {_JSON}, not {question.content_type or 'a body without a type'}")
        return None

    def _handle(self, question: Question) -> Answer | Awaitable[Answer]:
        began = time.perf_counter()
        path, _, query = question.target.partition("?")
        webhook = self._webhooks[path]
        found = self._reviewed(webhook, question.body, query)
        return self._later(webhook, found, began) if isinstance(found, Awaitable) else self._told(webhook, found, began)

    async def _later(self, webhook: Webhook, found: "Awaitable[tuple[str, Answer]]", began: float) -> Answer:
        return self._told(webhook, await found, began)

    def _told(self, webhook: Webhook, found: tuple[str, Answer], began: float) -> Answer:
        result, answer = found
        self._metrics.review(webhook.path, result, time.perf_counter() - began)
        return answer

    def _reviewed(
        self, webhook: Webhook, body: bytes, query: str
    ) -> "tuple[str, Answer] | Awaitable[tuple[str, Answer]]":
        try:
            review = read_review(body)
        except Malformed as error:
            if not error.uid:
                return "malformed", turned_away(400, str(error))
            return "malformed", Answer(200, refused(error.uid, str(error)))
        if problem := review.misdirected(webhook):
            return "malformed", Answer(200, refused(review.uid, problem))
        try:
            verdict = self._judge(webhook, review.request, review.dry_run)
        except Exception as error:  # noqa: BLE001 - a bug in one rule must not end the process
            return _failed(webhook, review, error)
        if isinstance(verdict, Verdict):
            return _judged(review, verdict)
        return self._waited(webhook, review, verdict, self._time_for(query))

    async def _waited(
        self, webhook: Webhook, review: Review, verdict: Awaitable[Verdict], time_s: float
    ) -> tuple[str, Answer]:
        try:
            async with asyncio.timeout(time_s):
                return _judged(review, await verdict)
        except (TimeoutError, errors.ApiError) as error:
            text = str(error) or f"no answer within {time_s:g} s"
            log.warning("a verdict could not be confirmed", path=webhook.path, problem=text)
            return "failed", turned_away(503, f"the verdict could not be confirmed: {text}")._replace(ends=False)
        except Exception as error:  # noqa: BLE001 - a bug in one rule must not end the process
            return _failed(webhook, review, error)

    def _time_for(self, query: str) -> float:
        """Return how long a verdict may take; the API server names its patience in the URL: ``?timeout=10s``."""
        asked = (parse_qs(query).get("timeout") or [""])[0].removesuffix("s")
        patience = self._options.answer_timeout_s
        with contextlib.suppress(ValueError):
            patience = min(patience, float(asked))
        return max(_SHORTEST_S, patience - _MARGIN_S)


def _judged(review: Review, verdict: Verdict) -> tuple[str, Answer]:
    return ("allowed" if verdict.allowed else "refused"), Answer(200, answered(review.uid, verdict))


def _failed(webhook: Webhook, review: Review, error: Exception) -> tuple[str, Answer]:
    """Refuse a review because of a bug."""
    log.error("a rule failed; the review is refused", path=webhook.path, name=review.request.name, exc_info=error)
    text = f"the review at {webhook.path} failed: {type(error).__name__}: {error}"
    return "failed", Answer(200, refused(review.uid, text, _INTERNAL))
