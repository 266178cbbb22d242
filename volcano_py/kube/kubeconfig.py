"""Reads the identity from a kubeconfig, at the start and at every refresh.

``kubernetes_asyncio.config`` reads everything except the ``exec`` sections, because it would run their programs without
a time limit; they are taken out first. It blocks while it reads files, so it works in a thread with an event loop of
its own.
"""

import asyncio
import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from volcano_py.kube.address import is_address
from volcano_py.kube.blocking import Blocking
from volcano_py.kube.exec_plugin import CLUSTER_EXTENSION, ExecPlugin, plugin_of
from volcano_py.kube.identity import (
    Authorities,
    CredentialsError,
    Identity,
    show_files,
    show_text,
    tls_context,
    too_slow,
)
from volcano_py.kube.impersonation import impersonation
from volcano_py.kube.proxy import proxy_from_environment

_MALFORMED = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, yaml.YAMLError, aiohttp.ClientError),
)
"""What the library raises, beside its own ConfigException, on a malformed kubeconfig or a server that fails."""


class Kubeconfig:
    """One context of a kubeconfig: a server, how to trust it, and our identity there."""

    def __init__(
        self, path: str, context: str | None, server: str | None, environ: Mapping[str, str], limit_s: float
    ) -> None:
        self._path = path
        self._context = context
        self._server = server
        self._environ = environ
        self._limit_s = limit_s
        self._blocking = Blocking()
        self._settings: Any = None
        self._loader: Any = None
        self._plugin: ExecPlugin | None = None
        self._cluster: dict[str, Any] = {}  # for the plugin
        self._authorities = Authorities(f"kubeconfig {path}")
        self._shown = ""  # the client certificate that the TLS context has
        self.server = ""
        """The server's address; empty until the kubeconfig was read."""
        self.tls: ssl.SSLContext | None = None

    @property
    def name(self) -> str:
        """Where the identity comes from, for messages."""
        return self._plugin.name if self._plugin is not None else f"kubeconfig {self._path}"

    @property
    def tls_server_name(self) -> str | None:
        """The name that the server's certificate must have, if not its host's."""
        name: str | None = self._settings.tls_server_name
        return name

    @property
    def proxy(self) -> str | None:
        """The proxy on the way to the server."""
        return self._settings.proxy or proxy_from_environment(self.server, self._environ)

    async def open(self) -> Identity:
        """Read everything for the first time; raise CredentialsError."""
        from kubernetes_asyncio.config import ConfigException

        try:
            async with asyncio.timeout(self._limit_s):
                await self._blocking.run(self._read_all)
                return await self._identity()
        except TimeoutError as error:
            raise CredentialsError(f"{self.name} {too_slow(self._limit_s)}") from error
        except (ConfigException, *_MALFORMED) as error:
            raise CredentialsError(self._problem(error)) from error

    async def read(self, force: bool) -> Identity:
        """Return the present identity; ``force`` reads the kubeconfig itself again, which may have been corrected."""
        from kubernetes_asyncio.config import ConfigException

        try:
            if force:
                await self._blocking.run(self._read_all)
            elif self._plugin is None:
                await self._blocking.run(self._read_user)
            else:
                await self._blocking.run(self._read_authorities)
            return await self._identity()
        except (ConfigException, *_MALFORMED) as error:
            raise CredentialsError(
                f"kubeconfig {self._path}: the credentials cannot be refreshed: {error or type(error).__name__}"
            ) from error

    def _read_all(self) -> None:
        """Read the file and the files it names (called in a thread); on failure the earlier values stay."""
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

        files: Any = KubeConfigMerger(self._path)
        self._require_maps(files.config.value)
        loader: Any = KubeConfigLoader(
            config_dict=files.config,
            config_base_path=None,
            active_context=self._context,
            config_persister=files.save_changes,
        )
        plugin, user = None, loader._user
        if user is None:
            self._require_no_user(loader._current_context["context"])
            user = loader._user = ConfigNode("user", {}, self._path)  # the library cannot do without one
        if why := impersonation(user.value):
            raise CredentialsError(f"kubeconfig {self._path}: {why}")
        if "exec" in user and loader.provider not in ("gcp", "oidc"):
            folder = Path(user.path or "").absolute().parent
            plugin = plugin_of(user.value["exec"], f"kubeconfig {self._path}", str(folder))
            # The plugin gives the identity, but the section may add a certificate. The file is not changed.
            kept = {key: value for key, value in user.value.items() if key.startswith("client-")}
            loader._user = ConfigNode(user.name, kept, user.path)
        settings: Any = Configuration()
        asyncio.run(self._load(loader, settings))
        server = self._server or getattr(loader, "host", "")
        if not server:
            raise CredentialsError(f"kubeconfig {self._path}: the cluster of its context names no server")
        if not is_address(server):
            raise CredentialsError(
                f"kubeconfig {self._path}: {server!r}, the server of the cluster, is not the address of an API server: "
                "write http://HOST:PORT or https://HOST:PORT"
            )
        if not self.server:
            self.server = server
            self.tls = tls_context(server, settings, f"kubeconfig {self._path}")
        elif server != self.server:  # connections go on to the first server, and this token is not for it
            raise CredentialsError(f"it names another server now, {server}: restart this process to go there")
        self._context = loader._current_context["name"]  # `kubectl config use-context` is meant for others
        self._authorities.follow(self.tls, settings.ssl_ca_cert)
        self._loader, self._settings, self._plugin = loader, settings, plugin
        if plugin is not None and plugin.wants_cluster:
            self._cluster = self._cluster_info(loader._cluster.value)
        self._show_certificate()

    def _require_maps(self, document: Mapping[str, Any]) -> None:
        """Refuse users, clusters and contexts that are no maps, for which the library has no sentence.

        A user without fields gets an empty map.
        """
        for field in ("user", "cluster", "context"):
            for one in document.get(f"{field}s") or ():
                entry = getattr(one, "value", one)
                if not isinstance(entry, dict):
                    continue
                if not isinstance(entry.get(field) or {}, dict):
                    raise CredentialsError(
                        f"kubeconfig {self._path}: the {field} {entry.get('name')!r} is no map; correct {field}s"
                    )
                if field == "user" and not entry.get(field):
                    entry[field] = {}  # nobody, as in kubectl

    def _require_no_user(self, context: Any) -> None:
        """Refuse a context with the name of a user that the file does not have."""
        if name := context.safe_get("user"):
            raise CredentialsError(
                f"kubeconfig {self._path} does not have the user {name!r} of its context; `kubectl config get-users` "
                "lists those it has"
            )

    def _read_user(self) -> None:
        """Read token and certificate files, or have the library renew a token (called in a thread)."""
        asyncio.run(self._load(self._loader, self._settings))
        self._read_authorities()
        self._show_certificate()

    def _read_authorities(self) -> None:
        self._authorities.follow(self.tls, self._settings.ssl_ca_cert)

    async def _load(self, loader: Any, settings: Any) -> None:
        async with asyncio.timeout(self._limit_s):  # some tokens come from a server
            await loader.load_and_set(settings)

    def _show_certificate(self) -> None:
        """Present the certificate of the file from now on; it may have been renewed."""
        if self.tls is None or not self._settings.cert_file:
            return
        try:
            certificate = Path(self._settings.cert_file).read_text()
            if certificate != self._shown:
                show_files(self.tls, self._settings.cert_file, self._settings.key_file)
        except OSError as error:
            raise CredentialsError(f"the certificates of kubeconfig {self._path} cannot be used: {error}") from error
        self._shown = certificate

    async def _identity(self) -> Identity:
        if self._plugin is None:
            header = self._settings.api_key.get("BearerToken")
            return Identity(header.strip() if header else None, self._shown)
        answer = await self._plugin.run(self._environ, self._cluster)
        tls = self.tls
        if tls is not None and answer.certificate and answer.certificate != self._shown:
            try:
                await self._blocking.run(lambda: show_text(tls, answer.certificate, answer.key))
            except OSError as error:
                raise CredentialsError(f"{self.name} gave a certificate that cannot be used: {error}") from error
            self._shown = answer.certificate
        return Identity(f"Bearer {answer.token}" if answer.token else None, self._shown, answer.until)

    def _cluster_info(self, cluster: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a plugin receives about the server, under client-go's names."""
        authority = self._settings.ssl_ca_cert
        info = {
            "server": self.server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": not self._settings.verify_ssl,
            "certificate-authority-data": base64.b64encode(Path(authority).read_bytes()).decode() if authority else "",
            "proxy-url": self.proxy,
            "disable-compression": bool(cluster.get("disable-compression")),
            "config": next(
                (e.get("extension") for e in cluster.get("extensions") or [] if e.get("name") == CLUSTER_EXTENSION),
                None,
            ),
        }
        return {name: value for name, value in info.items() if value}

    def _problem(self, error: Exception) -> str:
        path = self._path
        if "contexts list" in str(error):
            wanted = f"context {self._context!r}" if self._context else "its current-context"
            return f"kubeconfig {path} does not have {wanted}; `kubectl config get-contexts` lists those it has"
        if "current-context" in str(error):
            return f"kubeconfig {path} has no current-context; `kubectl config use-context NAME` sets it"
        what = " ".join(str(error).split()) or type(error).__name__  # YAML errors have several lines
        return f"kubeconfig {path} cannot be used: {what}; check its clusters, users and contexts"
