"""Build the programs of the control plane that are missing: `python -m tests.controlplane.build [NAME ...]`.

A cold build takes about eleven minutes on two cores; with Go's own caches warm it takes seconds. If every program is
there, nothing is built. If $KUBECONFIG names a cluster, no programs are needed and nothing is built.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.controlplane.binaries import (
    ASSETS,
    ETCD,
    KUBE_APISERVER,
    KUBE_SCHEDULER,
    KUBECTL,
    MODULE,
    PROGRAMS,
    Binaries,
    Program,
    cache_folder,
    find_binaries,
)

HEARTBEAT_S = 15.0
TAIL_LINES = 30

Say = Callable[[str], None]


class BuildFailed(Exception):
    """A program could not be built; the message is meant for the user."""


def say_on_stderr(line: str) -> None:
    """Print a line and flush it, so that it shows at once even in a file."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def build_missing(programs: Sequence[Program] = PROGRAMS, say: Say = say_on_stderr) -> Binaries:
    """Build the missing programs and return the paths of all."""
    found = find_binaries()
    if not found.missing(programs):
        return found
    _require_go(found.missing(programs))
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one_builds(folder, say):
        missing = find_binaries().missing(programs)
        say(f"building {len(missing)} programs of the control plane into {folder} (once; minutes when cold)")
        started = time.monotonic()
        for position, program in enumerate(missing, start=1):
            _build(program, f"[{position}/{len(missing)}] {program.name}", say)
        say(f"built in {time.monotonic() - started:.0f} s")
    return find_binaries()


def _require_go(missing: Sequence[Program]) -> None:
    """Raise BuildFailed, with a message of one line, if no Go can build our module."""
    needed = next(line.split()[1] for line in (MODULE / "go.mod").read_text().splitlines() if line.startswith("go "))
    way_out = (
        f"install Go {needed} or newer (https://go.dev/dl), or set {ASSETS} to a folder that holds"
        f" {', '.join(program.name for program in missing)}, or KUBECONFIG to a cluster for tests"
    )
    if shutil.which("go") is None:
        raise BuildFailed(f"the end-to-end tests need programs that are built with Go, and there is no Go: {way_out}")
    # Go compares its own version with the one go.mod asks for, and may be set up to fetch a newer one.
    asked = subprocess.run(
        ["go", "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, check=False, timeout=300
    )
    if asked.returncode:
        raise BuildFailed(f"this Go cannot build the control plane ({_last_line(asked.stderr)}): {way_out}")


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


@contextlib.contextmanager
def _only_one_builds(folder: Path, say: Say) -> Iterator[None]:
    """Make a second build of the same programs wait for the first."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of the control plane is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(program: Program, title: str, say: Say) -> None:
    """Build one program beside its final path, then rename it, so that a half-written one is never found."""
    folder = cache_folder(program)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{program.name}-", dir=folder) as scratch:
        env = dict(os.environ)
        if program.version:
            env["GOBIN"] = scratch
            command = ["go", "install", *program.flags, f"{program.package}@{program.version}"]
        else:
            command = ["go", "build", *program.flags, "-o", f"{scratch}/{program.name}", program.package]
        started = time.monotonic()
        say(f"{title} ...")
        _run_with_heartbeat(command, env, Path(scratch) / "log", title, say)
        (Path(scratch) / program.name).replace(folder / program.name)
        size = (folder / program.name).stat().st_size / 1e6
        say(f"{title}: {time.monotonic() - started:.0f} s, {size:.0f} MB")


def _run_with_heartbeat(command: Sequence[str], env: dict[str, str], log: Path, title: str, say: Say) -> None:
    """Run a command and report regularly that it is alive; if it fails, raise with the end of its output."""
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=MODULE,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while True:
            try:
                code = process.wait(HEARTBEAT_S)
                break
            except subprocess.TimeoutExpired:
                say(f"{title}: {time.monotonic() - started:.0f} s, still building")
    except BaseException:  # also after Ctrl-C: go starts several compilers, and none may be left
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
        raise BuildFailed(f"{title}: `{' '.join(command)}` in {MODULE} ended with {code}:\n{tail}")


def wanted_programs(names: Sequence[str] = ()) -> Sequence[Program]:
    """Return the named programs, or all that `make e2e` needs: with $KUBEBUILDER_ASSETS, those that its tests start."""
    if names:
        return [program for program in PROGRAMS if program.name in names]
    if os.environ.get(ASSETS):
        return [program for program in PROGRAMS if program is not KUBE_SCHEDULER]
    return PROGRAMS


def _refuse_incomplete_assets() -> None:
    assets = os.environ.get(ASSETS)
    if not assets:
        return
    absent = [p.name for p in (KUBE_APISERVER, ETCD, KUBECTL) if not os.access(Path(assets) / p.name, os.X_OK)]
    if absent:
        raise BuildFailed(f"{ASSETS}={assets} does not hold {', '.join(absent)}: correct or unset it")


def main(names: Sequence[str] = ()) -> int:
    """Build what is missing, of all programs or of these, and return the exit code of the command."""
    if not names and (kubeconfig := os.environ.get("KUBECONFIG")):
        say_on_stderr(f"KUBECONFIG={kubeconfig}: the end-to-end tests use that cluster, nothing is built")
        return 0
    try:
        if not names:
            _refuse_incomplete_assets()
        binaries = build_missing(wanted_programs(names))
    except BuildFailed as failed:
        say_on_stderr(str(failed))
        return 1
    except KeyboardInterrupt:
        say_on_stderr("interrupted; what was built so far is kept")
        return 130
    folders = sorted({str(path.parent) for path in binaries.paths.values()})
    say_on_stderr(f"control plane: {', '.join(binaries.paths)} in {', '.join(folders)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
