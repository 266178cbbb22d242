"""Servers that answer with the node loads that a test gives them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """Serve every path with one function; yield the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def vector(**percents: float | str) -> dict[str, Any]:
    """Return Prometheus' answer with one series per instance; ``__`` stands for a colon."""
    series = [
        {"metric": {"instance": name.replace("__", ":")}, "value": [1700000000.5, str(percent)]}
        for name, percent in percents.items()
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


def prometheus(cpu: dict[str, float | str], memory: dict[str, float | str]) -> Answer:
    """Answer questions for cpu and memory."""

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/api/v1/query":
            return web.Response(status=404, text=f"nothing at {request.path}")
        asked = request.query["query"]
        return web.json_response(vector(**(cpu if "node_cpu_seconds_total" in asked else memory)))

    return answer
