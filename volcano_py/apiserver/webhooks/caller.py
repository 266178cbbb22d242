"""Call a webhook over HTTPS, within its timeout."""

from __future__ import annotations

import base64
import ssl
from functools import lru_cache

import aiohttp

from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.webhooks.review import BadAnswer, Verdict, read_answer

_MAX_ANSWER = 4 * 1024 * 1024


class CallFailed(Exception):
    """A webhook could not be asked, or its answer could not be used; the message says why."""


@lru_cache(maxsize=64)
def _tls(bundle: str) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())


class Caller:
    """Calls webhooks; keeps connections open between calls."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, hook: Obj, review: Obj) -> Verdict:
        """Send a question and read the verdict; CallFailed if the call or the answer fails."""
        client, timeout_s = hook["clientConfig"], hook["timeoutSeconds"]
        if client.get("service"):
            where = f"{client['service'].get('namespace')}/{client['service'].get('name')}"
            raise CallFailed(f"the embedded API server resolves no services ({where}): give clientConfig.url")
        url = f"{client['url']}?timeout={timeout_s}s"
        try:
            body = await self._post(url, encode(review), _tls(client.get("caBundle") or ""), timeout_s)
            return read_answer(body, review["request"]["uid"])
        except TimeoutError as error:
            raise CallFailed(f'failed to call webhook: Post "{url}": no answer within {timeout_s} s') from error
        except (aiohttp.ClientError, OSError, ssl.SSLError, UnicodeDecodeError) as error:
            raise CallFailed(f'failed to call webhook: Post "{url}": {error}') from error
        except BadAnswer as error:
            raise CallFailed(str(error)) from error

    async def _post(self, url: str, body: bytes, tls: ssl.SSLContext, timeout_s: float) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        headers = {"Content-Type": "application/json"}
        async with self._session.post(url, data=body, ssl=tls, timeout=timeout, headers=headers) as response:
            answer = await response.content.read(_MAX_ANSWER)
            if response.status != 200:
                text = answer[:200].decode(errors="replace").strip()
                raise BadAnswer(f"the server answered {response.status}: {text}")
            return answer

    async def close(self) -> None:
        """Close the open connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
