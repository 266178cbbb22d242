"""Who we are and where the API server is: kubeconfig, the pod's ServiceAccount, or a bare address.

Reading kubeconfigs, running exec plugins and refreshing tokens is left to ``kubernetes_asyncio.config``; it is imported
only when there is something for it to read, as the import alone takes 0.4 s. Its HTTP session is not used.
"""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
import yaml

from volcano_py.kube.proxy import proxy_from_environment
from volcano_py.runtime.clock import Clock, RealClock

log = structlog.get_logger()

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_REFRESH_EVERY_S = 60.0  # how long a token read from a file or a plugin is used before it is looked at again
_FORCED_REFRESH_APART_S = 5.0  # a server that answers 401 to everything must not make us run a plugin per request
_REFRESH_TIMEOUT_S = 30.0  # an exec plugin may ask a cloud for a token

_MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, yaml.YAMLError)
"""What the library raises, beside its own ConfigException, on a kubeconfig that is not one."""


class CredentialsError(Exception):
    """There is no usable way to the API server; the message says what to do."""


Refresh = Callable[[bool], Awaitable[str | None]]
"""Read the Authorization header anew; True demands a new token even if the old one looks valid."""


class Credentials:
    """An API server's address, TLS settings and the Authorization header that is valid now."""

    def __init__(
        self,
        server: str,
        *,
        authorization: str | None = None,
        tls: ssl.SSLContext | None = None,
        tls_server_name: str | None = None,
        proxy: str | None = None,
        refresh: Refresh | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.tls = tls
        self.tls_server_name = tls_server_name
        self.proxy = proxy
        self.authorization = authorization
        self._refresh = refresh
        self._clock = clock or RealClock()
        self._due = self._clock.monotonic() + _REFRESH_EVERY_S if refresh else float("inf")
        self._forced_at = float("-inf")
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        """Return the address only: credentials do not belong in logs."""
        return f"Credentials({self.server!r})"

    @property
    def due(self) -> bool:
        """Whether :meth:`refresh` should be awaited before the next request."""
        return self._clock.monotonic() >= self._due

    async def refresh(self) -> None:
        """Look at the token again if it is time to; one caller does the work, the others wait for it."""
        async with self._lock:
            if self.due:
                await self._read(force=False)

    async def refresh_after_refusal(self, refused: str | None) -> bool:
        """Get a new header after a 401 to ``refused``; return whether there is another one to try."""
        async with self._lock:
            now = self._clock.monotonic()
            may_ask = self._refresh is not None and now - self._forced_at >= _FORCED_REFRESH_APART_S
            if self.authorization == refused and may_ask:
                self._forced_at = now
                await self._read(force=True)
            return self.authorization != refused

    async def _read(self, *, force: bool) -> None:
        """Read the token; if that fails the old one stays, and the server decides whether it still counts."""
        assert self._refresh is not None
        self._due = self._clock.monotonic() + _REFRESH_EVERY_S
        try:
            async with asyncio.timeout(_REFRESH_TIMEOUT_S):
                self.authorization = await self._refresh(force)
        except TimeoutError:
            log.warning(
                "token refresh timed out; run the kubeconfig's exec plugin by hand to see why",
                server=self.server,
                timeout_s=_REFRESH_TIMEOUT_S,
            )
        except CredentialsError as error:
            log.warning("token refresh failed", server=self.server, error=str(error))


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
    if server and urlsplit(server).scheme not in ("http", "https"):
        raise CredentialsError(
            f"{server!r} is no address of an API server: write http://HOST:PORT or https://HOST:PORT"
        )
    if server and server.startswith("http://") and not explicit:
        return Credentials(server, proxy=_checked_proxy(proxy_from_environment(server, environ)), clock=clock)
    if not explicit and environ.get(IN_CLUSTER_VARIABLE):
        return _from_service_account(server, environ, service_account, clock)
    path = kubeconfig or environ.get("KUBECONFIG") or str(_default_kubeconfig(environ))
    _require_a_file(path, server, is_default=not (kubeconfig or environ.get("KUBECONFIG")))
    return await _from_kubeconfig(path, context, server, environ, clock)


def _default_kubeconfig(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / ".kube" / "config"


def _require_a_file(path: str, server: str | None, *, is_default: bool) -> None:
    if any(part and Path(part).expanduser().is_file() for part in path.split(os.pathsep)):
        return
    if is_default and server:
        raise CredentialsError(
            f"there is nothing to prove to {server} who we are: --kubeconfig and $KUBECONFIG are not set, this is not "
            f"a pod (${IN_CLUSTER_VARIABLE} is not set) and {path} does not exist; name a kubeconfig"
        )
    if is_default:
        raise CredentialsError(
            f"no Kubernetes cluster is configured: --kubeconfig and $KUBECONFIG are not set, this is not a pod "
            f"(${IN_CLUSTER_VARIABLE} is not set) and {path} does not exist; name a kubeconfig or a server"
        )
    raise CredentialsError(f"kubeconfig {path} does not exist or is no file; check --kubeconfig and $KUBECONFIG")


async def _from_kubeconfig(
    path: str, context: str | None, server: str | None, environ: Mapping[str, str], clock: Clock | None
) -> Credentials:
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    settings: Any = Configuration()
    load: Any = config.load_kube_config
    try:
        async with asyncio.timeout(_REFRESH_TIMEOUT_S):
            loader: Any = await load(path, context=context, client_configuration=settings)
    except TimeoutError as error:
        raise CredentialsError(f"kubeconfig {path}: no token within {_REFRESH_TIMEOUT_S:g} s") from error
    except (config.ConfigException, *_MALFORMED) as error:
        raise CredentialsError(_kubeconfig_problem(path, context, error)) from error
    address = server or getattr(loader, "host", "")
    if not address:
        raise CredentialsError(f"kubeconfig {path}: the cluster of its context names no server")
    tls = _tls_context(address, settings, f"kubeconfig {path}")

    async def refresh(force: bool) -> str | None:
        nonlocal loader
        # A plugin that names no expiry is asked again only when the server refuses what it gave.
        runs_plugin = "exec" in (loader._user or {})
        if runs_plugin and not force and not hasattr(loader, "exec_plugin_expiry"):
            return _authorization(settings)
        try:
            if force:  # the file itself may have been mended
                loader = await load(path, context=context, client_configuration=settings)
            else:
                await loader.load_and_set(settings)
            if tls is not None:
                _load_client_certificate(tls, settings)  # it may have been renewed; new connections use it
        except (config.ConfigException, *_MALFORMED) as error:
            raise CredentialsError(f"kubeconfig {path}: the credentials cannot be refreshed: {error}") from error
        return _authorization(settings)

    return Credentials(
        address,
        authorization=_authorization(settings),
        tls=tls,
        tls_server_name=settings.tls_server_name,
        proxy=_checked_proxy(settings.proxy or proxy_from_environment(address, environ)),
        refresh=refresh,
        clock=clock,
    )


def _kubeconfig_problem(path: str, context: str | None, error: Exception) -> str:
    if "contexts list" in str(error):
        wanted = f"context {context!r}" if context else "its current-context"
        return f"kubeconfig {path} does not have {wanted}; `kubectl config get-contexts` lists those it has"
    if "current-context" in str(error):
        return f"kubeconfig {path} has no current-context; `kubectl config use-context NAME` sets it"
    if isinstance(error, FileNotFoundError) and not error.filename:  # uvloop does not say which program it looked for
        return f"kubeconfig {path} cannot be used: the program of its exec plugin does not exist; install it"
    return f"kubeconfig {path} cannot be used: {error or type(error).__name__}; check its clusters, users and contexts"


def _from_service_account(
    server: str | None, environ: Mapping[str, str], directory: Path, clock: Clock | None
) -> Credentials:
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    settings: Any = Configuration()
    token_file = directory / "token"
    try:
        load_incluster_config: Any = config.load_incluster_config
        load_incluster_config(
            settings,
            try_refresh_token=False,  # the token file is read below: at once after a 401, else every minute
            token_filename=str(token_file),
            cert_filename=str(directory / "ca.crt"),
            environ=environ,
        )
    except (config.ConfigException, OSError) as error:
        raise CredentialsError(
            f"this looks like a pod (${IN_CLUSTER_VARIABLE} is set) but its ServiceAccount in {directory} cannot be "
            f"used: {error}; mount it (automountServiceAccountToken) or pass --kubeconfig"
        ) from error

    async def refresh(force: bool) -> str | None:
        del force  # a file is simply read
        try:
            return f"Bearer {token_file.read_text().strip()}"
        except OSError as error:
            raise CredentialsError(f"the ServiceAccount token {token_file} cannot be read: {error}") from error

    address = server or settings.host
    return Credentials(
        address,
        authorization=_authorization(settings),
        tls=_tls_context(address, settings, f"the ServiceAccount in {directory}"),
        proxy=_checked_proxy(proxy_from_environment(address, environ)),
        refresh=refresh,
        clock=clock,
    )


def _authorization(settings: Any) -> str | None:
    header = settings.api_key.get("BearerToken")
    return header.strip() if header else None


def _tls_context(address: str, settings: Any, origin: str) -> ssl.SSLContext | None:
    if not address.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        # Python 3.13 refuses authorities without a key identifier; clusters have them and Go clients accept them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(context, settings)
    except OSError as error:
        raise CredentialsError(f"the certificates of {origin} cannot be used: {error}") from error
    return context


def _load_client_certificate(context: ssl.SSLContext, settings: Any) -> None:
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, keyfile=settings.key_file)


def _checked_proxy(proxy: str | None) -> str | None:
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise CredentialsError(f"proxy {proxy} cannot be used: only http:// and https:// proxies are supported")
    return proxy
