"""Reviews as an API server sends them, and a server that judges them with a given function."""

import io
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry

from volcano_py.admission.certificates import generated
from volcano_py.admission.contract import Request, Verdict
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.paths import Webhook
from volcano_py.admission.server import Judge, ReviewServer, ServerOptions
from volcano_py.admission.serving import ServedCertificate

NAMES = ("localhost", "127.0.0.1")
PATH = "/jobs/validate"
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "u-1",
        "kind": {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"},
        "resource": {"group": "batch.volcano.sh", "version": "v1alpha1", "resource": "jobs"},
        "name": "train",
        "namespace": "default",
        "operation": "CREATE",
        "object": {"metadata": {"name": "train"}, "spec": {"queue": "default"}},
        "oldObject": None,
    },
}


def review(**request: Any) -> bytes:
    """Return a review; arguments replace fields of its request."""
    return msgspec.json.encode({**REVIEW, "request": {**REVIEW["request"], **request}})  # type: ignore[dict-item]


async def allow(_: Webhook, __: Request, ___: bool) -> Verdict:
    return Verdict()


class Client:
    """Sends reviews to one server, whose certificate it verifies."""

    def __init__(self, session: aiohttp.ClientSession, server: ReviewServer) -> None:
        self.session, self.server = session, server

    def url(self, path: str = PATH) -> str:
        return f"https://127.0.0.1:{self.server.port}{path}"

    async def post(self, body: bytes, path: str = PATH, **headers: str) -> tuple[int, Any]:
        """Return the status, and the answer: JSON or text."""
        headers = {"Content-Type": "application/json", **headers}
        async with self.session.post(self.url(path), data=io.BytesIO(body), headers=headers) as answer:
            raw = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, msgspec.json.decode(raw) if is_json else raw.decode()

    async def ask(self, body: bytes, path: str = PATH) -> dict[str, Any]:
        """Return the response of an answered review."""
        status, answer = await self.post(body, path)
        assert status == 200, answer
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = answer["response"]
        return response


def trusting(authorities: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authorities.decode())


@asynccontextmanager
async def serving(judge: Judge = allow, **options: Any) -> AsyncIterator[Client]:
    """Start a server on a free port of loopback, and a client that trusts it."""
    metrics = AdmissionMetrics(CollectorRegistry())
    served = ServedCertificate(metrics)
    pair, issuer = generated(NAMES, datetime.now(UTC), timedelta(hours=1))
    served.serve(pair, issuer)
    chosen = ServerOptions(host="127.0.0.1", port=0, **options)
    server = ReviewServer(judge, [PATH, "/queues/validate"], served.context, metrics, chosen)
    await server.start()
    try:
        connector = aiohttp.TCPConnector(ssl=trusting(issuer), limit=200)
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield Client(session, server)
    finally:
        await server.close(1)
