"""The API server's address and our identity there: from a kubeconfig, the pod's ServiceAccount, or a bare address.

The identity is refreshed in the background, well before it expires. No request waits for a refresh, except after a 401.

                  ┌───────── refreshed, due again before it expires ◀──────┐
    in use ── due, and a request checks ──▶ refreshing, old one in use ────┤
       └───── a 401 to it ──▶ refreshing, refused requests wait for it ────┤
                  └──────── failed, the old one stays, due after a while ◀─┘

``kubernetes_asyncio.config`` reads kubeconfigs and ServiceAccounts. It is imported only when there is something to
read, because the import alone takes 0.4 s. Its HTTP session is not used.
"""

import asyncio
import os
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from volcano_py.kube.address import is_address
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.blocking import Blocking
from volcano_py.kube.identity import Authorities, Identity, tls_context, too_slow
from volcano_py.kube.identity import CredentialsError as CredentialsError
from volcano_py.kube.kubeconfig import Kubeconfig
from volcano_py.kube.proxy import objection, proxy_from_environment
from volcano_py.runtime.clock import Clock, RealClock

log = structlog.get_logger()

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_REFRESH_EVERY_S = 60.0  # between refreshes of an identity without an expiry
_REFRESH_TIMEOUT_S = 30.0  # an exec plugin may ask a cloud for a token
_LIFE_USED = 0.8  # the part of its life after which a token is refreshed
_AHEAD_S = 60.0  # but at least this long before its expiry, unless that is more than half of its life
_APART_S = 5.0  # between forced refreshes: a server that answers 401 to everything must not cost a plugin per request
_BACKOFF_FIRST_S = 2.0
_BACKOFF_CAP_S = 30.0
_CLOSE_S = 5.0  # for a plugin to end

Refresh = Callable[[bool], Awaitable[Identity | str | None]]
"""Reads the identity again; a mere text is an Authorization header.

True forbids it to rely on what it read before, because that was refused or could not be read. It is cancelled when it
takes too long, and raises CredentialsError when it fails.
"""


class Credentials:
    """An API server's address, TLS settings and our present identity there; clients may share it."""

    def __init__(
        self,
        server: str,
        *,
        authorization: str | None = None,
        identity: Identity | None = None,
        tls: ssl.SSLContext | None = None,
        tls_server_name: str | None = None,
        proxy: str | None = None,
        refresh: Refresh | None = None,
        origin: str = "the refresh of the token",
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.tls = tls
        self.tls_server_name = tls_server_name
        self.proxy = proxy
        self.identity = (identity or Identity(authorization)).checked(origin)
        self._refresh = refresh
        self._origin = origin
        self._clock = clock or RealClock()
        self._backoff = Backoff(rng or random.Random(), _BACKOFF_FIRST_S, _BACKOFF_CAP_S)
        self._due = self._clock.monotonic() + self._lifetime(self.identity.until) if refresh else float("inf")
        self._may_force_at = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._users = 0
        self._closed = False

    def __repr__(self) -> str:
        """Return the address only: credentials do not belong in logs."""
        return f"Credentials({self.server!r})"

    @property
    def authorization(self) -> str | None:
        """The Authorization header that is valid now."""
        return self.identity.authorization

    def look(self) -> None:
        """Start a refresh of the identity if it is due; never waits."""
        if self._clock.monotonic() >= self._due and not self._closed and self._running() is None:
            self._start(refused=False)

    async def refresh(self) -> None:
        """Refresh the identity if it is due, and wait until that has succeeded or failed."""
        self.look()
        if (task := self._running()) is not None:
            await asyncio.wait((task,), timeout=_REFRESH_TIMEOUT_S + _CLOSE_S)

    async def refresh_after_refusal(self, refused: Identity, timeout_s: float) -> bool:
        """Wait for another identity after a 401 to ``refused``; return whether there is one to try.

        The caller waits no longer than ``timeout_s``; a refresh that is under way goes on for later callers.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while self.identity == refused:
            task = self._running()
            if task is None:
                if self._refresh is None or self._closed or self._clock.monotonic() < self._may_force_at:
                    break
                task = self._start(refused=True)
            await asyncio.wait((task,), timeout=max(deadline - loop.time(), 0.0))
            if not task.done() or task.cancelled() or loop.time() >= deadline:
                break
        return self.identity != refused

    def open(self) -> None:
        """Register a client that uses these credentials; it must :meth:`close` them."""
        self._users += 1
        self._closed = False

    async def close(self) -> None:
        """Deregister a client; the last one ends the refresh under way, and no other one begins."""
        self._users -= 1
        if self._users > 0:
            return
        self._closed = True
        if (task := self._running()) is not None:
            task.cancel()
            await asyncio.wait((task,), timeout=_CLOSE_S)

    def _running(self) -> asyncio.Task[None] | None:
        return self._task if self._task is not None and not self._task.done() else None

    def _start(self, *, refused: bool) -> asyncio.Task[None]:
        """Start a refresh; the caller makes sure that none is running."""
        self._task = asyncio.create_task(self._read(refused), name="refresh of credentials")
        self._task.add_done_callback(_log_unexpected)
        return self._task

    async def _read(self, refused: bool) -> None:
        """Read the identity; if that fails, keep the old one and let the server decide whether it is still valid."""
        assert self._refresh is not None
        now = self._clock.monotonic()
        before, self._due = self._due, now + _REFRESH_EVERY_S
        try:
            async with asyncio.timeout(_REFRESH_TIMEOUT_S):
                found = await self._refresh(refused or self._backoff.failures > 0)
            identity = (found if isinstance(found, Identity) else Identity(found)).checked(self._origin)
        except TimeoutError:
            self._failed(f"{self._origin} {too_slow(_REFRESH_TIMEOUT_S)}")
        except CredentialsError as error:
            self._failed(str(error))
        except Exception as error:
            log.exception("reading credentials failed unexpectedly", server=self.server)
            self._failed(f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            self._due = before  # the last client is gone; the next one starts again
            raise
        else:
            self.identity = identity
            now = self._clock.monotonic()
            if refused:
                self._may_force_at = now + _APART_S
            self._due = now + self._lifetime(self.identity.until)

    def _failed(self, problem: str) -> None:
        delay = self._backoff.next()
        self._due = self._clock.monotonic() + delay
        self._may_force_at = max(self._may_force_at, self._due, self._clock.monotonic() + _APART_S)
        log.warning(
            "the credentials cannot be refreshed; the old token stays in use",
            server=self.server,
            error=problem,
            again_in_s=round(delay, 1),
        )

    def _lifetime(self, until: datetime | None) -> float:
        """Return how long an identity that was just read is used before it is read again."""
        if until is None:
            self._backoff.reset()
            return _REFRESH_EVERY_S
        left = (until - self._clock.now()).total_seconds()
        if left > 0:
            self._backoff.reset()
            return max(min(_LIFE_USED * left, left - _AHEAD_S), left / 2, _APART_S)
        delay = self._backoff.next()
        log.warning(
            "the token has already expired; check the clock of this machine and the issuer of the token",
            server=self.server,
            origin=self._origin,
            expired=until.isoformat(),
            again_in_s=round(delay, 1),
        )
        return delay


def _log_unexpected(task: asyncio.Task[None]) -> None:
    """Log an exception that no refresh should raise; the next refresh tries again."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the refresh of credentials failed unexpectedly", exc_info=error)


async def load_credentials(
    *,
    server: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT_DIRECTORY,
    clock: Clock | None = None,
) -> Credentials:
    """Find the API server the way kubectl and in-cluster clients do.

    In this order: ``kubeconfig`` or ``context`` if given, ``$KUBECONFIG``, the pod's ServiceAccount,
    ``~/.kube/config``. ``server`` replaces the address found; alone, and over plain HTTP, it needs no credentials.
    """
    explicit = kubeconfig or context or environ.get("KUBECONFIG")
    if server and not is_address(server):
        raise CredentialsError(
            f"{server!r} is not the address of an API server: write http://HOST:PORT or https://HOST:PORT"
        )
    if server and server.startswith("http://") and not explicit:
        return Credentials(server, proxy=_checked_proxy(proxy_from_environment(server, environ)), clock=clock)
    if not explicit and environ.get(IN_CLUSTER_VARIABLE):
        return await _from_service_account(server, environ, service_account, clock)
    path = kubeconfig or environ.get("KUBECONFIG") or str(_default_kubeconfig(environ))
    _require_a_file(path, server, is_default=not (kubeconfig or environ.get("KUBECONFIG")))
    return await _from_kubeconfig(path, context, server, environ, clock)


def _default_kubeconfig(environ: Mapping[str, str]) -> Path:
    # A container may run as a user without a home; pathlib would raise then.
    return Path(environ.get("HOME") or os.path.expanduser("~")) / ".kube" / "config"


def _require_a_file(path: str, server: str | None, *, is_default: bool) -> None:
    if any(part and os.path.isfile(os.path.expanduser(part)) for part in path.split(os.pathsep)):
        return
    if is_default and server:
        raise CredentialsError(
            f"there are no credentials for {server}: --kubeconfig and $KUBECONFIG are not set, this is not a pod "
            f"(${IN_CLUSTER_VARIABLE} is not set) and {path} does not exist; name a kubeconfig"
        )
    if is_default:
        raise CredentialsError(
            f"no Kubernetes cluster is configured: --kubeconfig and $KUBECONFIG are not set, this is not a pod "
            f"(${IN_CLUSTER_VARIABLE} is not set) and {path} does not exist; name a kubeconfig or a server"
        )
    raise CredentialsError(f"kubeconfig {path} does not exist or is not a file; check --kubeconfig and $KUBECONFIG")


async def _from_kubeconfig(
    path: str, context: str | None, server: str | None, environ: Mapping[str, str], clock: Clock | None
) -> Credentials:
    kubeconfig = Kubeconfig(path, context, server, environ, _REFRESH_TIMEOUT_S)
    identity = await kubeconfig.open()
    return Credentials(
        kubeconfig.server,
        identity=identity,
        tls=kubeconfig.tls,
        tls_server_name=kubeconfig.tls_server_name,
        proxy=_checked_proxy(kubeconfig.proxy),
        refresh=kubeconfig.read,
        origin=kubeconfig.name,
        clock=clock,
    )


async def _from_service_account(
    server: str | None, environ: Mapping[str, str], directory: Path, clock: Clock | None
) -> Credentials:
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    origin = f"the ServiceAccount in {directory}"
    blocking = Blocking()
    settings: Any = Configuration()
    token_file, authority_file = directory / "token", directory / "ca.crt"
    authorities = Authorities(origin)

    def load() -> ssl.SSLContext | None:
        load_incluster_config: Any = config.load_incluster_config
        load_incluster_config(
            settings,
            try_refresh_token=False,  # the token file is read below: at once after a 401, else every minute
            token_filename=str(token_file),
            cert_filename=str(authority_file),
            environ=environ,
        )
        context = tls_context(server or settings.host, settings, origin)
        authorities.follow(context, str(authority_file))
        return context

    def read() -> str:
        authorities.follow(tls, str(authority_file))
        return token_file.read_text()

    async def refresh(force: bool) -> Identity:
        del force  # a file is always read again
        try:
            return Identity(f"Bearer {(await blocking.run(read)).strip()}")
        except (OSError, ValueError) as error:
            raise CredentialsError(f"the ServiceAccount token {token_file} cannot be read: {error}") from error

    try:
        async with asyncio.timeout(_REFRESH_TIMEOUT_S):
            tls = await blocking.run(load)
    except (config.ConfigException, OSError) as error:
        raise CredentialsError(
            f"this looks like a pod (${IN_CLUSTER_VARIABLE} is set) but its ServiceAccount in {directory} cannot be "
            f"used: {error or type(error).__name__}; mount it (automountServiceAccountToken) or pass --kubeconfig"
        ) from error
    address = server or settings.host
    header = settings.api_key.get("BearerToken")
    return Credentials(
        address,
        authorization=header.strip() if header else None,
        tls=tls,
        proxy=_checked_proxy(proxy_from_environment(address, environ)),
        refresh=refresh,
        origin=origin,
        clock=clock,
    )


def _checked_proxy(proxy: str | None) -> str | None:
    if proxy and (why := objection(proxy)):
        raise CredentialsError(why)
    return proxy
