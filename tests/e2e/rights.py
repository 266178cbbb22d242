"""Records which rights the processes of manifests/ use in a run, and fails the run if manifests/ grant other ones.

The requests of all control planes of the run are in the audit logs of their API servers. A run of all end-to-end tests
fails if a process lacks a right or has one that it never uses. Any other run fails only if a process lacks a right. The
record of the last run of all tests stays in `.pytest_cache`; `--last-failed` adds to it. To compare it again:

    python -m tests.e2e.rights [RECORD...]
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.controlplane.audit import FOLDER
from tests.controlplane.rights import (
    MANIFESTS,
    PROVED,
    RECORD,
    REPOSITORY,
    Differences,
    Record,
    Right,
    compare,
    granted,
)

__all__ = [
    "pytest_collection_finish",
    "pytest_configure",
    "pytest_deselected",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]

HERE = Path(__file__).parent
CACHE = "volcano-py-rights"
LAST = "last-run.json"
TABLE = pytest.StashKey[str]()
COMPARED = pytest.StashKey[str]()
PARTIAL = pytest.StashKey[bool]()


def proved(account: str, right: Right) -> None:
    """Note that nothing works without a right that only admission checks; call it after a test has shown that."""
    if folder := os.environ.get(FOLDER):
        with Path(folder, PROVED).open("a") as file:
            file.write(json.dumps([account, *right]) + "\n")


# The run


def pytest_configure(config: pytest.Config) -> None:
    """Let the API servers of this run write audit logs."""
    # Processes of a parallel run collect on their own: nobody here knows which tests they leave out.
    config.stash[PARTIAL] = _is_rerun(config) or config.getoption("dist", default="no") != "no"
    if (kept := _cache(config)) is not None:
        cache = kept.mkdir(CACHE)
        for left in cache.glob("run-*"):
            if not Path("/proc", left.name.removeprefix("run-")).exists():
                shutil.rmtree(left, ignore_errors=True)  # another worker may remove it, too
        os.environ.setdefault(FOLDER, str(cache / f"run-{os.getpid()}"))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that not all tests run."""
    if items and any(HERE in item.path.parents for item in items):
        items[0].config.stash[PARTIAL] = True


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note whether all tests run."""
    config = session.config
    named = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
    ignored = config.getoption("ignore") or config.getoption("ignore_glob")
    if ignored or not any(folder in (HERE, *HERE.parents) for folder in named):
        config.stash[PARTIAL] = True


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Compare what was used with what is granted; differences fail the run."""
    config = session.config
    if hasattr(config, "workerinput"):
        return  # others of a parallel run still write into the folder
    folder = Path(os.environ.pop(FOLDER, ""))
    rerun = _is_rerun(config)
    kept = _cache(config)
    if kept is None or not (folder.name and (folder.exists() or rerun)):
        return  # no control plane was started
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)  # not interrupted, such as with Ctrl-C
    record = Record(whole=ended and not (config.stash[PARTIAL] or session.shouldstop or session.shouldfail))
    record.take_logs(folder)
    shutil.rmtree(folder, ignore_errors=True)
    requests = sum(record.used.values())
    unused = "none unused" if record.whole else "not all tests ran, so unused ones are not looked for"
    config.stash[COMPARED] = f"{requests} requests of our processes: no right is missing; {unused}"
    differences = judge(record, kept.mkdir(CACHE), rerun=rerun)
    if table := differences.table():
        if session.testsfailed:
            table += "\n  Tests have failed. A right that only they use counts as never used."
        config.stash[TABLE] = table
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _cache(config: pytest.Config) -> pytest.Cache | None:
    """Return where a run keeps what the next one needs; with `-p no:cacheprovider` there is nothing."""
    return getattr(config, "cache", None)


def _is_rerun(config: pytest.Config) -> bool:
    return bool(config.getoption("lf", default=False))


def judge(record: Record, cache: Path, *, rerun: bool) -> Differences:
    """Store the record of a run in a folder, and compare it with what is granted."""
    record.write(cache / LAST)
    before = cache / RECORD
    if rerun and before.exists():
        whole = Record.read(before)
        whole.add(record)
        record = whole
    if record.whole:
        record.write(before)
    return compare(granted(), record)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the differences."""
    if table := config.stash.get(TABLE, ""):
        terminalreporter.section("rights of the processes", red=True)
        terminalreporter.write_line(table)
    elif compared := config.stash.get(COMPARED, ""):
        terminalreporter.write_line(compared)


# After a run


def main(arguments: Sequence[str]) -> int:
    """Compare recorded runs, all together, with what manifests/ grant now."""
    files = [Path(each) for each in arguments] or [REPOSITORY / ".pytest_cache" / "d" / CACHE / RECORD]
    record = Record(whole=True)
    for file in files:
        if file.is_dir():
            record.take_logs(file)
        else:
            record.add(Record.read(file))
    differences = compare(granted(MANIFESTS), record)
    print(differences.table() or f"{sum(record.used.values())} requests: rights used = rights granted")
    return 1 if differences.table() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
