"""Flags are read as by pflag, and what is wrong is said in one sentence."""

from __future__ import annotations

import pytest

from volcano_py.cli.vcctl.commands import ALONE, VCCTL
from volcano_py.cli.vcctl.finding import find
from volcano_py.cli.vcctl.flags import NUMBER, SWITCH, Command, Flag, UsageProblem, read_flags
from volcano_py.cli.vcctl.program import start

COMMAND = Command(
    ("vcctl", "job", "x"),
    "try",
    "module:function",
    (
        Flag("name", "N", "", "a name"),
        Flag("namespace", "n", "default", "a namespace"),
        Flag("replicas", "r", "1", "a number", NUMBER),
        Flag("all", "a", "", "a switch", SWITCH),
        Flag("watch", "w", "", "another", SWITCH),
        Flag("output", "o", "", "a form", choices=("json", "yaml")),
    ),
    "vcctl job x",
    "name",
)


@pytest.mark.parametrize(
    "line",
    [
        "--name a --namespace=b -r 3",
        "-N a -n b -r3",
        "-Na -nb -r=3",
        "a --namespace b --replicas=3",
        "-n b -r 3 -- a",
        "-r 3 a -n=b",
    ],
)
def test_every_way_to_write_flags_means_the_same(line: str) -> None:
    flags = read_flags(COMMAND, line.split())

    assert (flags.text("name"), flags.text("namespace"), flags.number("replicas")) == ("a", "b", 3)
    assert not flags.on("all")
    assert flags.given == {"name", "namespace", "replicas"}


@pytest.mark.parametrize(
    "line",
    [
        "job view -N job.batch.volcano.sh/a",
        "job view vcjob/a",
        "job why vj/a",
        "queue get -n queue.scheduling.volcano.sh/a",
    ],
)
def test_a_name_may_have_its_kind_before_it_as_the_output_of_names_has(line: str) -> None:
    command, words = find("vcctl", line.split())
    assert command is not None

    assert read_flags(command, words).text("name") == "a"


def test_a_name_of_another_kind_is_refused() -> None:
    command, words = find("vcctl", ["job", "view", "queue.scheduling.volcano.sh/a"])
    assert command is not None

    with pytest.raises(UsageProblem, match=r"write the name of a job, or job/NAME"):
        read_flags(command, words)


def test_switches_stand_together_and_take_a_value_only_with_an_equals_sign() -> None:
    assert read_flags(COMMAND, ["-aw"]).on("all")
    assert read_flags(COMMAND, ["-aw"]).on("watch")
    assert not read_flags(COMMAND, ["-a", "--all=false"]).on("all")
    assert read_flags(COMMAND, ["-a", "x"]).text("name") == "x"


@pytest.mark.parametrize(
    "line", ["-v 4 job list --all_namespaces", "-v=4 job list -A", "job list --v 4 -A --vmodule=a=1"]
)
def test_flags_of_scripts_for_volcano_are_read(line: str) -> None:
    command, words = find("vcctl", line.split())

    assert command is not None
    assert command.path == ("vcctl", "job", "list")
    assert read_flags(command, words).on("all-namespaces")


def test_flags_that_are_not_given_have_their_defaults() -> None:
    flags = read_flags(COMMAND, [])

    assert (flags.text("namespace"), flags.number("replicas"), flags.text("output")) == ("default", 1, "")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--nmae x", "unknown flag: --nmae (did you mean --name?)"),
        ("-z", "unknown shorthand flag: 'z' in -z"),
        ("-az", "unknown shorthand flag: 'z' in -z"),
        ("--name", "flag needs an argument: --name"),
        ("-r many", "invalid argument 'many' for -r: write a whole number"),
        ("-r 3.5", "invalid argument '3.5' for -r"),
        ("-r 9999999999", "invalid argument '9999999999' for -r"),
        ("-o xml", "invalid argument 'xml' for -o: write one of json, yaml"),
        ("--all=maybe", "invalid argument 'maybe' for --all: write true or false"),
        ("a b", "unexpected argument 'b': name is 'a' already"),
        ("--name a b", "unexpected argument 'b': name is 'a' already"),
        ("a --name b", "unexpected argument 'a': name is 'b' already"),
    ],
)
def test_what_is_wrong_is_said_with_a_way_out(line: str, sentence: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        read_flags(COMMAND, line.split())

    assert sentence in str(problem.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("jbo", 'Failed to execute command: unknown command "jbo" for "vcctl"; did you mean "job"?'),
        ("job lst", 'Failed to execute command: unknown command "lst" for "vcctl job"; did you mean "list"?'),
        ("job list --nope", 'Failed to list job: unknown flag: --nope; "vcctl job list --help" lists the flags'),
        ("version x", "Failed to version: unexpected argument 'x': this command takes flags only"),
        ("-n default jbo", 'Failed to execute command: unknown command "jbo" for "vcctl"; did you mean "job"?'),
        ("job -h lst", 'Failed to execute command: unknown command "lst" for "vcctl job"; did you mean "list"?'),
        ("job --nope -h", 'Failed to job: unknown flag: --nope; "vcctl --help" lists the commands'),
        ("job --nope", 'Failed to job: unknown flag: --nope; "vcctl --help" lists the commands'),
    ],
)
def test_a_wrong_command_line_ends_with_255(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("vcctl", line.split()) == 255
    assert capsys.readouterr().out.startswith(sentence)


@pytest.mark.parametrize(
    "line", ["-h job list", "job -h list", "--help job list", "-n default -h job list", "-A job -h list"]
)
def test_help_may_be_asked_for_before_the_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("vcctl", line.split()) == 0
    told = capsys.readouterr().out

    assert start("vcctl", ["job", "list", "--help"]) == 0
    assert told == capsys.readouterr().out


@pytest.mark.parametrize("line", ["-n default --help", "-n default", "job -n default -h"])
def test_a_flag_without_a_command_is_no_unknown_flag(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("vcctl", line.split()) == 0
    assert "Available Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["", "--help", "help", "-h"])
def test_help_of_the_program_names_every_group(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("vcctl", line.split()) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {command.path[1]} " in text for command in VCCTL if len(command.path) == 2)


@pytest.mark.parametrize("command", [*VCCTL, *ALONE.values()], ids=lambda command: " ".join(command.path))
def test_help_of_every_command_has_an_example_that_its_own_flags_allow(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *path = command.path
    assert start(program, [*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples:" in text
    assert all(f"--{flag.name}" in text for flag in command.flags)
    if command.run and "<(" not in command.example:
        import shlex

        words = shlex.split(command.example)
        found, rest = find(program, words[1:])
        assert found == command
        read_flags(command, rest)


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("120", 100), ("200", 100), ("", 80)])
@pytest.mark.parametrize("command", [*VCCTL, *ALONE.values()], ids=lambda command: " ".join(command.path))
def test_help_is_not_wider_than_its_terminal(
    command: Command, columns: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    program, *path = command.path
    assert start(program, [*path, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > width] == []


def test_a_text_of_help_goes_on_below_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert start("vsub", ["--help"]) == 0
    wrapped = "  -i, --image IMAGE          container image; else $VOLCANO_DEFAULT_IMAGE or\n" + " " * 29 + "busybox\n"
    assert wrapped in capsys.readouterr().out


@pytest.mark.parametrize("command", [*VCCTL, *ALONE.values()], ids=lambda command: " ".join(command.path))
def test_no_two_flags_of_a_command_have_the_same_name_or_letter(command: Command) -> None:
    names = [flag.name for flag in command.flags]
    letters = [flag.short for flag in command.flags if flag.short]
    assert len(names) == len(set(names))
    assert len(letters) == len(set(letters))


LETTERS = {
    "vcctl job run": "image=i:busybox namespace=n:default name=N: min=m:1 replicas=r:1 scheduler=S:volcano filename=f: "
    "requests=R:cpu=1000m,memory=100Mi limits=L:cpu=1000m,memory=100Mi master=s: kubeconfig=k:",
    "vcctl job list": "queue=q: namespace=n:default scheduler=S: all-namespaces=A: selector=: master=s: kubeconfig=k:",
    "vcctl job view": "namespace=n:default name=N:",
    "vcctl job suspend": "namespace=n:default name=N:",
    "vcctl job resume": "namespace=n:default name=N:",
    "vcctl job delete": "namespace=n:default name=N:",
    "vcctl queue create": "name=n:test weight=w:1 state=S:Open",
    "vcctl queue delete": "name=n:",
    "vcctl queue get": "name=n:",
    "vcctl queue operate": "name=n: weight=w:0 action=a:",
    "vcctl pod list": "queue=q: job=j: namespace=n:default all-namespaces=A:",
    "vcctl jobflow create": "file=f:",
    "vcctl jobflow list": "namespace=n:default all-namespaces=A:",
    "vcctl jobflow get": "name=N: namespace=n:default",
    "vcctl jobflow describe": "name=N: namespace=n:default format=o:yaml",
    "vcctl jobflow delete": "name=N: namespace=n:default file=f:",
    "vcctl jobtemplate create": "file=f:",
    "vcctl jobtemplate list": "namespace=n:default",
    "vcctl jobtemplate describe": "name=N: namespace=n:default format=o:yaml",
    "vsub": "name=n: namespace=N: image=i: min=m:1 replicas=r:1 scheduler=S: command=c: "
    "requests=R:cpu=1000m,memory=100Mi limits=L:cpu=1000m,memory=100Mi",
    "vjobs": "name=n: namespace=N:default scheduler=S: all-namespaces=A: selector=:",
    "vqueues": "name=n:",
    "vcancel": "name=n: namespace=N:default",
    "vsuspend": "name=n: namespace=N:default",
    "vresume": "name=n: namespace=N:default",
}
"""Flag, letter and default of Volcano's programs."""


@pytest.mark.parametrize("path", LETTERS)
def test_flags_letters_and_defaults_are_those_of_volcano(path: str) -> None:
    command = next(one for one in (*VCCTL, *ALONE.values()) if " ".join(one.path) == path)
    for word in LETTERS[path].split():
        name, _, rest = word.partition("=")
        letter, _, default = rest.partition(":")
        flag = command.flag(name)
        assert (flag.short, flag.default) == (letter, default), name
