"""Finds the API server and our identity there, in the order of `volcano_py.kube.credentials`, without its start time.

Tokens, certificates and passwords of a kubeconfig and the ServiceAccount of a pod are read here. Exec plugins are run
by `volcano_py.kube.exec_plugin`. Users with an ``auth-provider`` are left to `volcano_py.kube.credentials`. Both are
imported only then, because they take half a second.
"""

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from volcano_py.client.problem import Problem, in_one_line
from volcano_py.kube.address import is_address
from volcano_py.kube.impersonation import impersonation
from volcano_py.kube.proxy import proxy_from_environment

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_PLUGIN_S = 30.0
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Access(NamedTuple):
    """A server and what to show it."""

    server: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: str = ""
    origin: str = ""
    """Where this comes from, for messages."""

    def __repr__(self) -> str:
        """Return the address only: credentials do not belong in logs."""
        return f"Access({self.server!r})"


def find_access(
    *,
    server: str = "",
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Find the server: flags, then $KUBECONFIG, then the pod's ServiceAccount, then ~/.kube/config."""
    plain = _with_scheme(server, secure=False)
    if server and not is_address(plain):
        raise Problem(f"{server!r} is not the address of an API server: write http://HOST:PORT or https://HOST:PORT")
    named = kubeconfig or environ.get("KUBECONFIG", "")
    if plain.startswith("http://") and not named and not context:
        return Access(plain.rstrip("/"), proxy=proxy_from_environment(plain, environ) or "", origin="--master")
    if not named and not context and environ.get(_IN_CLUSTER):
        return _in_cluster(server, environ, service_account)
    found, default = _files(kubeconfig, environ)
    if not found:
        raise Problem(_no_file(named, default, kubeconfig, server))
    return _from_kubeconfig(found, context, server, environ)


def _with_scheme(server: str, *, secure: bool) -> str:
    """Return an address; without a scheme it is HTTP unless certificates are named, as for kubectl."""
    if not server or "://" in server:
        return server
    return f"{'https' if secure else 'http'}://{server}"


def context_names(kubeconfig: str = "", environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names of the contexts that `find_access` would know."""
    entries = [one for path in _files(kubeconfig, environ)[0] for one in _read(path).get("contexts") or ()]
    return list(dict.fromkeys(str(one.get("name")) for one in entries if isinstance(one, dict)))


def _files(kubeconfig: str, environ: Mapping[str, str]) -> tuple[list[Path], str]:
    """Return the kubeconfig files that exist, and the one that counts if nothing names another."""
    # A container may run as a user without a home; pathlib would raise then.
    default = str(Path(environ.get("HOME") or os.path.expanduser("~")) / ".kube" / "config")
    named = [kubeconfig] if kubeconfig else (environ.get("KUBECONFIG") or default).split(os.pathsep)
    paths = [Path(os.path.expanduser(part)) for part in named if part]
    return [path for path in paths if path.is_file()], default


def _no_file(named: str, default: str, kubeconfig: str, server: str) -> str:
    if named:
        origin = "--kubeconfig" if kubeconfig else "$KUBECONFIG"
        return f"kubeconfig {named} does not exist or is not a file; check {origin}"
    of_what = f"there are no credentials for {server}" if server else "no Kubernetes cluster is configured"
    return (
        f"{of_what}: --kubeconfig and $KUBECONFIG are not set, this is not a pod and {default} does not exist; "
        "name a kubeconfig or a server"
    )


def _in_cluster(server: str, environ: Mapping[str, str], folder: Path) -> Access:
    origin = f"the ServiceAccount in {folder}"
    host, port = environ[_IN_CLUSTER], environ.get("KUBERNETES_SERVICE_PORT", "443")
    address = server or f"https://{f'[{host}]' if ':' in host else host}:{port}"
    try:
        token = (folder / "token").read_text().strip()
        tls = _tls(address, str(folder / "ca.crt"), "", verify=True, origin=origin)
    except OSError as error:
        raise Problem(
            f"this looks like a pod (${_IN_CLUSTER} is set) but {origin} cannot be used: {error}; mount it or pass "
            "--kubeconfig"
        ) from error
    return Access(address, f"Bearer {token}", tls, proxy=proxy_from_environment(address, environ) or "", origin=origin)


class _Entry(NamedTuple):
    """A named section of a kubeconfig and the folder that its relative paths refer to."""

    fields: Mapping[str, Any]
    folder: Path

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def path(self, name: str) -> str:
        value = self.text(name)
        return str(self.folder / value) if value else ""

    def data(self, name: str) -> bytes:
        """Return the content of ``name-data`` or of the file ``name``; data win, as in kubectl."""
        if inline := self.text(f"{name}-data"):
            return base64.b64decode("".join(inline.split()), validate=True)
        return Path(path).read_bytes() if (path := self.path(name)) else b""


def _from_kubeconfig(paths: list[Path], context: str, server: str, environ: Mapping[str, str]) -> Access:
    origin = f"kubeconfig {os.pathsep.join(map(str, paths))}"
    documents = [(_read(path), path.absolute().parent) for path in paths]
    wanted = context or next((str(one["current-context"]) for one, _ in documents if one.get("current-context")), "")
    if not wanted:
        raise Problem(f"{origin} has no current-context; `kubectl config use-context NAME` sets it")
    chosen = _entry(documents, "contexts", "context", wanted)
    if chosen is None:
        raise Problem(f"{origin} does not have context {wanted!r}; `kubectl config get-contexts` lists those it has")
    cluster = _entry(documents, "clusters", "cluster", chosen.text("cluster"))
    user = _entry(documents, "users", "user", chosen.text("user"))
    if user is None and chosen.text("user"):
        raise Problem(
            f"{origin} does not have the user {chosen.text('user')!r} of context {wanted!r}; "
            "`kubectl config get-users` lists those it has"
        )
    if user is not None and (why := impersonation(user.fields)):
        raise Problem(f"{origin}: {why}")
    address = server or (cluster.text("server") if cluster else "")
    if not address:
        raise Problem(f"{origin}: the cluster of context {wanted!r} names no server")
    empty = _Entry({}, Path())
    address = _with_scheme(address, secure=_names_certificates(cluster or empty, user or empty))
    if not is_address(address):
        raise Problem(
            f"{origin}: the cluster of context {wanted!r} has the server {address!r}, which is not the address of an "
            "API server: write http://HOST:PORT or https://HOST:PORT"
        )
    try:
        return _of_context(address.rstrip("/"), cluster or empty, user or empty, origin, paths, wanted, environ)
    except (OSError, ValueError) as error:
        raise Problem(f"{origin} cannot be used: {error}; check its clusters, users and contexts") from error


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Problem(
            f"kubeconfig {path} cannot be read: {in_one_line(error)}; write it again or name another file"
        ) from error
    if document is not None and not isinstance(document, dict):
        raise Problem(f"kubeconfig {path} is not a kubeconfig: it has no clusters, users and contexts")
    return document or {}


def _entry(documents: list[tuple[Mapping[str, Any], Path]], section: str, field: str, name: str) -> _Entry | None:
    """Return the first entry of that name; earlier files win."""
    for document, folder in documents:
        for one in document.get(section) or ():
            if isinstance(one, dict) and str(one.get("name")) == name:
                fields = one.get(field) or {}
                if not isinstance(fields, dict):
                    raise Problem(f"a kubeconfig in {folder} has a {field} {name!r} that is no map; correct {section}")
                return _Entry(fields, folder)
    return None


def _names_certificates(cluster: _Entry, user: _Entry) -> bool:
    """Say whether a context is for TLS; a token must then not be sent over HTTP."""
    names = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
    shown = ("client-certificate", "client-certificate-data")
    return any(map(cluster.fields.get, names)) or any(map(user.fields.get, shown))


def _of_context(
    server: str, cluster: _Entry, user: _Entry, origin: str, paths: list[Path], context: str, environ: Mapping[str, str]
) -> Access:
    if user.fields.get("auth-provider"):
        return _by_library(server, paths, context, environ, origin)
    verify = not cluster.fields.get("insecure-skip-tls-verify")
    authority = cluster.data("certificate-authority").decode()
    tls = _tls(server, "", authority, verify=verify, origin=origin)
    proxy = cluster.text("proxy-url") or proxy_from_environment(server, environ) or ""
    name = cluster.text("tls-server-name")
    certificate, key = user.data("client-certificate"), user.data("client-key")
    authorization = _authorization(user)
    if not authorization and user.fields.get("exec"):
        info = {
            "server": server,
            "tls-server-name": name,
            "insecure-skip-tls-verify": not verify,
            "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
            "proxy-url": cluster.text("proxy-url"),
            "config": next(
                (
                    one.get("extension")
                    for one in cluster.fields.get("extensions") or ()
                    if one.get("name") == "client.authentication.k8s.io/exec"
                ),
                None,
            ),
        }
        told = {field: value for field, value in info.items() if value}
        token, shown, its_key = _ask_plugin(user, told, origin, environ)
        authorization = f"Bearer {token}" if token else ""
        certificate, key = (shown.encode(), its_key.encode()) if shown else (certificate, key)
    if tls is not None and certificate:
        _present(tls, certificate, key)
    return Access(server, authorization, tls, name, proxy, origin)


def _authorization(user: _Entry) -> str:
    if path := user.path("tokenFile"):
        return f"Bearer {Path(path).read_text().strip()}"
    if token := user.text("token"):
        return f"Bearer {token.strip()}"
    if name := user.text("username"):
        pair = f"{name}:{user.text('password')}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""


def _ask_plugin(
    user: _Entry, cluster: Mapping[str, Any], origin: str, environ: Mapping[str, str]
) -> tuple[str, str, str]:
    import asyncio

    from volcano_py.kube.exec_plugin import plugin_of
    from volcano_py.kube.identity import CredentialsError, too_slow

    async def ask() -> tuple[str, str, str]:
        plugin = plugin_of(user.fields["exec"], origin, str(user.folder))
        try:
            async with asyncio.timeout(_PLUGIN_S):
                answer = await plugin.run(environ, cluster if plugin.wants_cluster else {})
        except TimeoutError as error:
            raise Problem(f"{plugin.name} {too_slow(_PLUGIN_S)}") from error
        return answer.token, answer.certificate, answer.key

    try:
        return asyncio.run(ask())
    except CredentialsError as error:
        raise Problem(str(error)) from error


def _by_library(server: str, paths: list[Path], context: str, environ: Mapping[str, str], origin: str) -> Access:
    import asyncio

    from volcano_py.kube.credentials import CredentialsError, load_credentials

    names = os.pathsep.join(map(str, paths))
    try:
        found = asyncio.run(load_credentials(server=server, kubeconfig=names, context=context, environ=environ))
    except CredentialsError as error:
        raise Problem(str(error)) from error
    return Access(
        found.server,
        found.authorization or "",
        found.tls,
        found.tls_server_name or "",
        found.proxy or "",
        origin,
    )


def _tls(server: str, file: str, text: str, *, verify: bool, origin: str) -> ssl.SSLContext | None:
    if not server.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cafile=file or None, cadata=text or None)
    except (ssl.SSLError, ValueError) as error:
        raise Problem(f"the certificates of {origin} cannot be used: {error}") from error
    # Python 3.13 refuses authorities without a key identifier; clusters use such ones, and Go clients accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _present(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Make connections present this certificate; ssl reads files only, so a private one exists for that moment."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-") as folder:  # mode 0700
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_bytes(certificate.strip() + b"\n" + key.strip() + b"\n")
        context.load_cert_chain(str(pair))
