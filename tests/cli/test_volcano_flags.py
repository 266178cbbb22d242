"""Flags without a meaning here: one warning names them all, whatever their number and whichever program it is."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from volcano_py.cli import vc_controller_manager, vc_scheduler, vc_webhook_manager

Main = Callable[[Sequence[str]], int]


def warned(main: Main, flags: Sequence[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Return what each warning about flags lists when a program starts that cannot reach a cluster."""
    assert main(["--log-format=json", f"--kubeconfig={folder / 'absent'}", *flags]) == 2
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [
        line["flags"] for line in lines if line["event"].startswith("these flags have no meaning here: remove them")
    ]


@pytest.mark.parametrize(
    ("main", "flags", "listed"),
    [
        pytest.param(
            vc_scheduler.main,
            ["--kube-api-qps=9", "--log_file=/log", "--csi-storage=false", "-v=3"],
            [
                "--kube-api-qps",
                "-v",
                "--csi-storage, --feature-gates=CSIStorage=false (what CSI drivers say about their room always counts)",
                "--log-file (logs go to standard error; use --log-level and --log-format)",
                "--feature-gates=Foo=true (unknown feature)",
            ],
            id="scheduler",
        ),
        pytest.param(
            vc_controller_manager.main,
            ["--sharding-configmap=shards", "--controllers=*,+sharding-controller", "-v=3"],
            [
                "--sharding-configmap",
                "-v",
                "--feature-gates=Foo=true (unknown feature)",
                "--controllers=sharding-controller (not implemented yet)",
            ],
            id="controllers",
        ),
    ],
)
def test_one_warning_names_every_flag_and_feature_and_variable(
    main: Main, flags: list[str], listed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = ["--feature-gates=CSIStorage=false", "--feature-gates=Foo=true"]

    assert warned(main, [*flags, *gates], tmp_path, capsys) == [listed]


@pytest.mark.parametrize("main", [vc_scheduler.main, vc_controller_manager.main], ids=["scheduler", "controllers"])
def test_without_such_flags_there_is_no_warning(main: Main, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert warned(main, ["--logtostderr", "--feature-gates=PriorityClass=true"], tmp_path, capsys) == []


@pytest.mark.parametrize(
    ("main", "flags"),
    [
        pytest.param(vc_scheduler.main, ["--leader-elect=false"], id="scheduler"),
        pytest.param(vc_controller_manager.main, ["--worker-threads-for-gc=5"], id="controllers"),
        pytest.param(vc_webhook_manager.main, ["--webhook-service-name=admission"], id="webhooks"),
    ],
)
def test_the_redirection_at_the_end_of_the_flags_in_volcanos_chart_is_accepted(
    main: Main, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert warned(main, [*flags, "--logtostderr", "2>&1"], tmp_path, capsys) == []


@pytest.mark.parametrize("stray", ["2>&2", "true", "--no-such-flag=1"])
def test_other_arguments_that_no_program_has_are_refused(
    stray: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        vc_scheduler.main([f"--kubeconfig={tmp_path / 'absent'}", "--leader-elect=false", stray])

    assert f"unrecognized arguments: {stray}" in capsys.readouterr().err
