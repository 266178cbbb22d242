"""Every command with every kind of wrong input, and what its sentence must say: one table, for two API servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from volcano_py.cli.vcctl.commands import ALONE, VCCTL
from volcano_py.cli.vcctl.flags import Command

NOWHERE = "nowhere"
GONE = "gone"
FLOW = "flow.volcano.sh/v1alpha1"

COMMANDS = {" ".join(one.path): one for one in (*VCCTL, *ALONE.values()) if one.run}
ASKING = {path: one for path, one in COMMANDS.items() if any(flag.name == "kubeconfig" for flag in one.flags)}
CREATING = {"vcctl job run", "vcctl queue create", "vsub"}
NEEDED = {"vcctl job wait": ["--for=phase=Running", "--timeout=0"], "vcctl queue operate": ["--action=open"]}
FROM_FILES = {"vcctl jobflow create": "JobFlow", "vcctl jobtemplate create": "JobTemplate"}


class Case(NamedTuple):
    """One line that must fail."""

    kind: str
    path: str
    words: list[str]
    sentence: str

    @property
    def program(self) -> str:
        """The program that is called."""
        return self.path.split()[0]

    @property
    def begin(self) -> str:
        """How its sentence begins: the command from its end, as in Volcano, and as a verb."""
        verbs = {"why": "explain", "logs": "read logs of", "wait": "wait for"}
        words = [verbs.get(word, word) for word in reversed(self.path.split()[1:])]
        return f"{' '.join(['Failed to', *words])}: "

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}"


class Kubeconfigs(NamedTuple):
    """Kubeconfigs that do not help."""

    broken: Path
    unreachable: Path
    unknown: Path
    """Its user has a token that the server does not know."""
    forbidden: Path
    """Its user has no rights."""


def written(folder: Path, kind: str, namespace: str = "default", name: str = GONE) -> Path:
    """Write a file with one object."""
    path = folder / f"{kind}-{namespace}-{name}.yaml"
    group = "batch.volcano.sh/v1alpha1" if kind == "Job" else FLOW
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    tasks = [{"name": "t", "replicas": 1, "template": pod}]
    spec = {"flows": [{"name": "step"}]} if kind == "JobFlow" else {"minAvailable": 1, "tasks": tasks}
    metadata = {"name": name, "namespace": namespace}
    path.write_text(yaml.safe_dump({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}))
    return path


def usual(path: str, folder: Path, name: str = GONE) -> list[str]:
    """Return a line that would be right if the object existed."""
    words = [*path.split()[1:], *NEEDED.get(path, [])]
    if path in FROM_FILES:
        return [*words, f"--file={written(folder, FROM_FILES[path])}"]
    return [*words, f"--name={name}"] if _has(ASKING[path], "name") else words


def wrong_flags() -> Iterator[Case]:
    """Yield each command with a flag that it does not have, one without its value, and a word too many."""
    for path in COMMANDS:
        words = path.split()[1:]
        yield Case("unknown flag", path, [*words, "--nope"], f'unknown flag: --nope; "{path} --help" lists the flags')
    for path in ASKING:
        words = path.split()[1:]
        yield Case("no value", path, [*words, "--kubeconfig"], "flag needs an argument: --kubeconfig")
        yield Case("a word too many", path, [*words, "one", "two"], "unexpected argument '")


def wrong_objects(folder: Path) -> Iterator[Case]:
    """Yield each command with a name, a namespace and a file that do not exist."""
    for path, command in ASKING.items():
        words = usual(path, folder)
        if _has(command, "name") and path not in CREATING:
            yield Case("wrong name", path, words, f'"{GONE}" not found')
        if path in CREATING:
            bad = usual(path, folder, "Not_A_Name")
            yield Case("wrong name", path, bad, "Not_A_Name")
        if _has(command, "namespace") and not path.endswith(" list"):  # a list is empty, with a warning
            yield Case("wrong namespace", path, [*words, f"--namespace={NOWHERE}"], NOWHERE)
        if path in FROM_FILES:
            elsewhere = written(folder, FROM_FILES[path], NOWHERE)
            yield Case("wrong namespace", path, [*path.split()[1:], f"--file={elsewhere}"], NOWHERE)
        if flag := next((flag.name for flag in command.flags if flag.name in ("file", "filename")), ""):
            yield from _wrong_files(path, flag, folder)


def _wrong_files(path: str, flag: str, folder: Path) -> Iterator[Case]:
    command = path.split()[1:]
    empty, broken, other = folder / "empty.yaml", folder / "broken.yaml", folder / "other.yaml"
    empty.write_text("")
    broken.write_text("a: [")
    other.write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    for file, sentence in (
        (folder / "missing.yaml", "cannot be read: No such file or directory"),
        (empty, "has no object"),
        (broken, "is not YAML"),
        (other, "has a Pod of v1; this command takes"),
    ):
        yield Case(f"{file.stem} file", path, [*command, f"--{flag}={file}"], sentence)


def wrong_servers(folder: Path, configs: Kubeconfigs) -> Iterator[Case]:
    """Yield each command with a server that does not help."""
    sentences = {
        folder / "no-kubeconfig": "does not exist or is not a file; check --kubeconfig",
        configs.broken: "cannot be read",
        configs.unreachable: "cannot be reached (Connection refused); check --master, --kubeconfig and $KUBECONFIG",
        configs.unknown: "your token has expired: check --kubeconfig and the user of its context",
        configs.forbidden: '"kubectl auth can-i --list" shows your rights on',
    }
    for path in ASKING:
        words = usual(path, folder, "a-name")
        for config, sentence in sentences.items():
            yield Case(config.name, path, [*words, f"--kubeconfig={config}"], sentence)
        yield Case("--master", path, [*words, "--master=ftp://x"], "'ftp://x' is not the address of an API server")
        yield Case("--context", path, [*words, "--context=other"], "does not have context 'other'")


def judge(case: Case, code: int, out: str, err: str) -> None:
    """Raise AssertionError unless a command failed as it must: one sentence, Volcano's exit code, no traceback."""
    assert (code, err) == (255, ""), (str(case), out)
    assert out.startswith(case.begin), (str(case), out)
    assert case.sentence in out, (str(case), out)
    assert out.count("\n") == 1, (str(case), out)
    assert out.endswith("\n"), (str(case), out)


def _has(command: Command, flag: str) -> bool:
    return any(one.name == flag for one in command.flags)
