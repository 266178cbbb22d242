"""Credential plugins: the programs named in the ``exec`` section of a kubeconfig's user.

A program runs in a session of its own. Its standard input is empty and its output is bounded. When the caller stops
waiting, at a time limit or because the process ends, the program is ended with everything it has started.

    started ──▶ wrote its answer, exit code 0 ──▶ an identity
       ├──────▶ anything else ──────────────────▶ CredentialsError
       └──────▶ cancelled, or wrote too much ───▶ SIGTERM to its group ── a moment later ─▶ SIGKILL ─▶ reaped
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import structlog

from volcano_py.kube.identity import UNTIL_REFUSED, CredentialsError

log = structlog.get_logger()

CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Name of the extension of a cluster that is passed to plugins."""

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MAX_OUTPUT: Final = 2**20
_KEPT_STDERR: Final = 2**14
_SHOWN_STDERR: Final = 300
_START_S: Final = 2.0  # for a program that is about to start when it is to be ended
_GRACE_S: Final = 1.0  # between SIGTERM and SIGKILL
_KILLED_S: Final = 2.0  # after SIGKILL
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What a plugin gave: a token, a client certificate with its key, or both."""

    token: str
    certificate: str
    key: str
    until: datetime


@dataclass(frozen=True, slots=True, repr=False)
class ExecPlugin:
    """A program and how it is to be run."""

    origin: str  # the kubeconfig, for messages
    command: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    version: str
    wants_cluster: bool
    hint: str

    @property
    def name(self) -> str:
        """The kubeconfig and the program, for messages."""
        return f"{self.origin}: exec plugin {self.command}"

    async def run(self, environ: Mapping[str, str], cluster: Mapping[str, Any]) -> Answer:
        """Run it once; raise CredentialsError. The caller sets the time limit: a cancellation ends the program."""
        program = shutil.which(self.command, path=environ.get("PATH", os.defpath))
        if program is None:
            raise self._error("does not exist or is not executable; install it, or correct the path of its command")
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": False}}
        if self.wants_cluster:
            info["spec"] = {"interactive": False, "cluster": dict(cluster)}
        variables = {**environ, **self.variables, "KUBERNETES_EXEC_INFO": json.dumps(info, default=str)}
        try:
            run = await _execute([program, *self.arguments], variables)
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror or error}") from error
        if run.too_much:
            raise self._error(f"wrote more than {_MAX_OUTPUT} bytes and was ended; run it by hand to see what")
        if run.code:
            how = f"ended with exit code {run.code}" if run.code > 0 else f"was ended by signal {-run.code}"
            raise self._error(f"{how}: {_last_line(run.stderr) or 'it said nothing'}; run it by hand to see why")
        return self._answer(bytes(run.stdout))

    def _answer(self, output: bytes) -> Answer:
        """Read its output; no message may show it, because it is a secret."""
        try:
            said = json.loads(output)
        except ValueError as error:
            raise self._error("wrote no ExecCredential: its output is not JSON; run it by hand to see it") from error
        if not isinstance(said, dict) or said.get("kind") != "ExecCredential":
            raise self._error("wrote no ExecCredential; run it by hand to see what it writes")
        if said.get("apiVersion") != self.version:
            raise self._error(
                f"answered in version {said.get('apiVersion')} and not in {self.version}; set the apiVersion of its "
                "section to that version"
            )
        status = said.get("status")
        status = status if isinstance(status, dict) else {}
        token, certificate, key = (
            str(status.get(name) or "").strip() for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if bool(certificate) != bool(key):
            raise self._error("gave a client certificate without its key, or a key without its certificate")
        if not token and not certificate:
            raise self._error("gave neither a token nor a client certificate; run it by hand to see why")
        return Answer(token, certificate, key, self._until(status.get("expirationTimestamp")))

    def _until(self, text: object) -> datetime:
        if not text:
            return UNTIL_REFUSED
        try:
            until = datetime.fromisoformat(str(text))
        except ValueError as error:
            raise self._error(f"gave {text!r} as expirationTimestamp; it must be a time as in RFC 3339") from error
        return until if until.tzinfo else until.replace(tzinfo=UTC)

    def _error(self, what: str) -> CredentialsError:
        return CredentialsError(f"{self.name} {what}{f' ({self.hint})' if self.hint else ''}")


def plugin_of(section: object, origin: str, folder: str) -> ExecPlugin:
    """Read an ``exec`` section of the kubeconfig in ``folder``; raise CredentialsError on one that cannot be used."""
    if not isinstance(section, Mapping) or not section.get("command"):
        raise CredentialsError(f"{origin}: the exec section of its user names no command")
    command = str(section["command"])
    mine = f"{origin}: exec plugin {command}"
    version = str(section.get("apiVersion") or "")
    if version not in _VERSIONS:
        raise CredentialsError(f"{mine} has apiVersion {version!r}; supported are {' and '.join(_VERSIONS)}")
    mode = str(section.get("interactiveMode") or "IfAvailable")
    if mode == "Always":
        raise CredentialsError(f"{mine} needs interactive input (interactiveMode: Always), which is not available here")
    if mode not in ("Never", "IfAvailable"):
        raise CredentialsError(f"{mine} has interactiveMode {mode!r}; it must be Never or IfAvailable")
    arguments, variables = section.get("args") or [], section.get("env") or []
    if not isinstance(arguments, list):
        raise CredentialsError(f"{mine}: its args are not a list")
    if not isinstance(variables, list) or not all(isinstance(v, Mapping) and v.get("name") for v in variables):
        raise CredentialsError(f"{mine}: its env is not a list of names and values")
    if "/" in command:  # relative to the kubeconfig, as in kubectl; a command without a slash is looked up in $PATH
        command = str(Path(folder, command))
    return ExecPlugin(
        origin=origin,
        command=command,
        arguments=tuple(map(str, arguments)),
        variables={str(v["name"]): str(v.get("value") or "") for v in variables},
        version=version,
        wants_cluster=bool(section.get("provideClusterInfo")),
        hint=" ".join(str(section.get("installHint") or "").split()),
    )


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:_SHOWN_STDERR] if lines else ""


class _Run(asyncio.SubprocessProtocol):
    """One run of a program: what it wrote, and when it is over."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stdout = bytearray()
        self.stderr = b""
        self.too_much = False
        self.code = 0
        self.exited: asyncio.Future[None] = loop.create_future()  # the program itself
        self.over: asyncio.Future[None] = loop.create_future()  # the program and all that hold its pipes open
        self.enough: asyncio.Future[None] = loop.create_future()  # over, or it wrote too much
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that it runs (called by the loop)."""
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take a part of what it writes (called by the loop)."""
        if fd != 1:
            self.stderr = (self.stderr + data)[-_KEPT_STDERR:]
        elif len(self.stdout) + len(data) <= _MAX_OUTPUT:
            self.stdout += data
        else:
            self.too_much = True
            _settle(self.enough)

    def process_exited(self) -> None:
        """Note its exit code (called by the loop)."""
        if self._transport is not None:
            self.code = self._transport.get_returncode() or 0
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it has ended and its pipes are closed (called by the loop)."""
        for future in (self.exited, self.over, self.enough):
            _settle(future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _execute(command: list[str], variables: Mapping[str, str]) -> _Run:
    """Run a program until it ends; when it writes too much or the caller is cancelled, end it with all it started."""
    loop = asyncio.get_running_loop()
    starting = loop.create_task(_start(loop, command, variables))
    try:
        transport, run = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end_when_started(starting)
        raise
    try:
        await run.enough
    finally:
        await _close(transport, run)
    return run


async def _end_when_started(starting: asyncio.Task[tuple[asyncio.SubprocessTransport, _Run]]) -> None:
    """End a program that is about to start.

    The start itself must not be cancelled: asyncio then waits for ever for the pipes that it has not connected. An
    event loop that closes cancels all tasks, so this waits for the start, which takes milliseconds.
    """
    try:
        await asyncio.wait((starting,), timeout=_START_S)
    except asyncio.CancelledError:
        starting.add_done_callback(_end_at_once)
        raise
    if not starting.done():
        starting.add_done_callback(_end_at_once)
    elif not starting.cancelled() and starting.exception() is None:
        await _close(*starting.result())


async def _close(transport: asyncio.SubprocessTransport, run: _Run) -> None:
    """Close the transport; end the program first if it has not ended."""
    try:
        if not run.over.done():
            await _end(transport.get_pid(), run)
    finally:
        transport.close()


async def _start(
    loop: asyncio.AbstractEventLoop, command: list[str], variables: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, _Run]:
    return await loop.subprocess_exec(
        lambda: _Run(loop),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=variables,
        start_new_session=True,  # its own process group, which can be ended as a whole
    )


def _end_at_once(starting: asyncio.Task[tuple[asyncio.SubprocessTransport, _Run]]) -> None:
    if starting.cancelled() or starting.exception() is not None:
        return
    transport, _ = starting.result()
    _send(transport.get_pid(), signal.SIGKILL)
    transport.close()


async def _end(group: int, run: _Run) -> None:
    """End a process group with SIGTERM, and with SIGKILL what is left after a moment or when we are cancelled."""
    try:
        if _send(group, signal.SIGTERM):
            await _gone(group, run, _GRACE_S)
    finally:
        left = _send(group, signal.SIGKILL)
    if left or not run.exited.done():  # asyncio must have seen the end, or it leaves the process unreaped
        await _gone(group, run, _KILLED_S)


async def _gone(group: int, run: _Run, exited_within_s: float) -> None:
    """Wait a moment for the group to end."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _GRACE_S
    await asyncio.wait((run.exited,), timeout=exited_within_s)
    while run.exited.done() and _send(group, 0) and loop.time() < deadline:
        _reap(group)
        await asyncio.sleep(_POLL_S)


def _reap(group: int) -> None:
    """Reap an orphan of the group; there is one only where this process is number 1 and inherits orphans."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-group, os.WNOHANG)


def _send(group: int, number: int) -> bool:
    """Send a signal to all of a group; return whether any process of it is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        log.warning("an exec plugin runs as another user and cannot be ended; end it by hand", process=group)
        return False
    return True
