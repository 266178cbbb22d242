"""Flags without a meaning here: one warning names them all, whatever their number and whichever program it is."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from volcano_py.cli import vc_controller_manager, vc_scheduler

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
