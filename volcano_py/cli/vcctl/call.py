"""What every command gets: its flags, the API server, and where to write."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from volcano_py.cli.vcctl.flags import Command, Values
from volcano_py.cli.vcctl.texts import harmless

if TYPE_CHECKING:
    from volcano_py.client.api import Api
    from volcano_py.kube.resource import Resource


_WEBHOOK: Final = re.compile(r'failed calling webhook "[^"]*volcano\.sh"')


def _now() -> datetime:
    return datetime.now(UTC)


class Call:
    """One call of one command."""

    def __init__(
        self,
        program: str,
        command: Command,
        flags: Values,
        *,
        api: "Api | None" = None,
        out: TextIO | None = None,
        now: Callable[[], datetime] = _now,
        timeout_s: float = 30.0,
    ) -> None:
        self.program = program
        self.command = command
        self.flags = flags
        self.now = now
        self._timeout_s = timeout_s
        self._api = api
        self._out = out or sys.stdout

    def __enter__(self) -> "Call":
        """Begin; nothing is opened yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection to the API server."""
        if self._api is not None:
            self._api.close()

    @property
    def api(self) -> "Api":
        """The API server that the flags name; it is reached at the first request."""
        if self._api is None:
            from volcano_py.client.access import find_access
            from volcano_py.client.api import Api

            flags = self.flags
            self._api = Api(
                lambda: find_access(
                    server=flags.text("master"), kubeconfig=flags.text("kubeconfig"), context=flags.text("context")
                ),
                self._timeout_s,
                self.warn,
            )
        return self._api

    @property
    def namespace(self) -> str:
        """The namespace to look in; empty for all."""
        return "" if self.flags.on("all-namespaces") else self.flags.text("namespace")

    def write(self, text: str) -> None:
        """Print a text as it is."""
        self._out.write(text)

    def line(self, text: str = "") -> None:
        """Print a line, without control characters that somebody put into an object."""
        self._out.write(f"{harmless(text)}\n")

    def warn(self, text: str) -> None:
        """Show a warning, such as those of the API server, as kubectl does: apart from the output."""
        print(f"Warning: {harmless(text)}", file=sys.stderr)

    def flush(self) -> None:
        """Show what was printed; a watch waits afterwards."""
        self._out.flush()

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads the output."""
        return self._out.isatty()

    @property
    def coloured(self) -> bool:
        """Whether colours are wanted: only on a terminal, and not if $NO_COLOR is set."""
        return self.on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """The columns of the terminal; without one, 120."""
        if not self.on_terminal:
            return 120
        import shutil

        return shutil.get_terminal_size((120, 40)).columns

    @property
    def height(self) -> int:
        """The lines of the terminal; without one there is no end, which is 0."""
        if not self.on_terminal:
            return 0
        import shutil

        return shutil.get_terminal_size((120, 40)).lines

    @contextmanager
    def about(self, kind: "Resource", name: str = "", list_command: str = "", namespace: str = "") -> Iterator[None]:
        """Add to the API server's refusals what to do next; ``namespace`` is that of the object, if not of the flag."""
        from volcano_py.client.problem import ApiProblem, Problem

        try:
            yield
        except ApiProblem as problem:
            raise Problem(f"{problem}{self._hint(problem, kind, name, list_command, namespace)}") from problem

    def _hint(self, problem: "Exception", kind: "Resource", name: str, list_command: str, namespace: str) -> str:
        status = getattr(problem, "status", 0)
        if status == 404 and not name:
            return f"; the cluster has no {kind.label}: install manifests/crds/"
        if status == 404:
            from volcano_py.kube.resource import NAMESPACES

            space = namespace or self.namespace
            if kind.namespaced and space and not self.api.exists(NAMESPACES, space):
                said = "" if f'namespaces "{space}"' in str(problem) else f"namespace {space} does not exist either: "
                return f'; {said}"kubectl get namespaces" lists those that exist'
            where = f" in namespace {space}" if kind.namespaced and space else ""
            return f'{where}; "{list_command}" lists those that exist' if list_command else where
        if status == 401:
            who = "does not know you, or your token has expired"
            return f"; the API server {who}: check --kubeconfig and the user of its context"
        if status == 403:
            refused = getattr(problem, "about", "") or kind.label  # the command may ask for objects of another kind
            return f'; "kubectl auth can-i --list" shows your rights on {refused}'
        if status == 409 and getattr(problem, "reason", "") == "AlreadyExists":
            return self._taken(kind, name, namespace or self.namespace)
        if 300 <= status < 400:
            return "; it may be no API server: check --master, --kubeconfig and $KUBECONFIG"
        if status < 500 and status != 429:
            return ""
        if _WEBHOOK.search(str(problem)):
            return '; "kubectl -n volcano-system get pods" says whether the webhook manager runs'
        return "" if "try again" in str(problem) else "; try again later"

    def _taken(self, kind: "Resource", name: str, namespace: str) -> str:
        """Return what to do if there is an object of the name already."""
        from volcano_py.client.problem import Problem

        metadata: dict[str, Any] = {}
        if name and (namespace or not kind.namespaced):
            with suppress(Problem):
                metadata = self.api.get(kind, name, namespace if kind.namespaced else "").get("metadata") or {}
        if metadata.get("deletionTimestamp"):
            from volcano_py.client.leaving import waits_until

            until = waits_until(metadata)
            behind = f" and waits until {until}" if until else ""
            return f"; it is being deleted{behind}: try again when it is gone, or choose another name"
        return "; choose another name or delete it first"
