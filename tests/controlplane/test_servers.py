"""Options determine which servers are started, and with which command lines."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.controlplane.binaries import PROGRAMS, Binaries
from tests.controlplane.ports import free_ports
from tests.controlplane.servers import Options, Servers

STAGES = Path(__file__).resolve().parents[1] / "e2e" / "stages"
BINARIES = Binaries({program.name: Path("/programs", program.name) for program in PROGRAMS})


def servers(folder: Path, options: Options) -> Servers:
    return Servers(options, BINARIES, folder, [1, 2, 3])


def test_ports_are_free_different_and_out_of_reach_of_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    ports = free_ports(5)

    assert len(set(ports)) == 5
    assert max(ports) < low


def test_fast_stages_stand_in_for_the_slow_ones() -> None:
    slow = {path.name for path in Options().stages(STAGES)}
    fast = {path.name for path in Options(fast=True).stages(STAGES)}

    assert {"pod-run.yaml", "pod-gone.yaml"} <= slow
    assert {"pod-run-fast.yaml", "pod-gone-fast.yaml"} <= fast
    assert slow & fast == {"node-ready.yaml", "pod-complete.yaml", "pod-fail.yaml"}


@pytest.mark.parametrize("slow", sorted(STAGES.glob("*-fast.yaml")), ids=lambda path: path.stem)
def test_a_fast_stage_differs_from_the_slow_one_only_in_its_delay(slow: Path) -> None:
    fast = yaml.safe_load(slow.read_text())
    plain = yaml.safe_load(slow.with_name(slow.name.replace("-fast", "")).read_text())

    assert "delay" not in fast["spec"]
    assert plain["spec"].pop("delay")
    assert fast == plain


@pytest.mark.parametrize(
    ("options", "disabled"),
    [
        pytest.param(Options(), None, id="everything-is-checked-as-usual"),
        pytest.param(Options(taint_new_nodes=False), "TaintNodesByCondition", id="new-nodes-stay-untainted"),
        pytest.param(
            Options(controller_manager=False),
            "ServiceAccount,TaintNodesByCondition",
            id="without-controllers-nothing-waits-for-them",
        ),
    ],
)
def test_admission_plugins_that_are_switched_off(tmp_path: Path, options: Options, disabled: str | None) -> None:
    flags = [str(part) for part in servers(tmp_path, options).apiserver() if "disable-admission" in str(part)]

    assert flags == ([f"--disable-admission-plugins={disabled}"] if disabled else [])


def test_heavy_load_raises_the_limits_on_requests_in_flight(tmp_path: Path) -> None:
    argv = servers(tmp_path, Options(heavy_load=True)).apiserver()

    assert "--max-requests-inflight=2000" in argv
    assert "--max-mutating-requests-inflight=1000" in argv


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    made = servers(tmp_path, Options())
    made.kubeconfig("system:someone")

    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_extra_arguments_come_last_and_take_precedence(tmp_path: Path) -> None:
    options = Options(apiserver_args=("--v=9",), controller_manager_args=("--v=8",), kwok_args=("--v=DEBUG",))
    made = servers(tmp_path, options)

    assert [made.apiserver()[-1], made.controller_manager()[-1], made.kwok(STAGES)[-1]] == [
        "--v=9",
        "--v=8",
        "--v=DEBUG",
    ]
