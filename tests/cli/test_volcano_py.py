"""The `volcano-py` command as users start and end it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from volcano_py.cli.volcano_py import main

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "volcano_py.cli.volcano_py"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_up_prints_how_to_reach_it_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*COMMAND, "up", "--nodes", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests themselves may run under nohup
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Pods of your own need"):
                break
        text = "".join(lines)
        kubeconfig = re.search(r"export KUBECONFIG=(\S+)", text)
        port = re.search(r"http://127\.0\.0\.1:(\d+)", text)
        assert kubeconfig is not None
        assert port is not None
        assert Path(kubeconfig[1]).exists()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out == "ended: nothing is left running\n"
    assert list(tmp_path.iterdir()) == []
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", int(port[1])))


def test_up_runs_a_plugin_of_a_folder_and_prints_what_the_configuration_lacks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from volcano_py.framework.contract import NodeOrder, Plugin\n\n\n"
        "class Mine(Plugin, NodeOrder):\n"
        '    name = "mine"\n\n'
        "    def node_order(self, task, nodes):\n"
        "        return nodes.allocatable[0] * 0\n"
    )
    conf = tmp_path / "scheduler.conf"
    conf.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}, {name: extender}]}]\n")
    command = [*COMMAND, "up", "--nodes", "1", "--scheduler-conf", str(conf), "--plugins-dir", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        started = any(line.startswith("Pods of your own need") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert started, err
    assert 'plugin "extender" is missing here' in err


def test_up_with_plugins_needs_a_configuration_that_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--plugins-dir", "."]) == 2
    assert "give --scheduler-conf" in capsys.readouterr().err


def test_up_says_that_its_port_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["up", "--port", str(port)]) == 1
    complaint = capsys.readouterr().err
    assert f"volcano-py up: port {port} on 127.0.0.1 is in use by another program" in complaint


def test_up_refuses_a_configuration_that_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text("actions: 5\n")
    assert main(["up", "--scheduler-conf", str(conf)]) == 2
    assert str(conf) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--cpu", "many"], "'many' is not a quantity: write 4, 500m or 16Gi"),
        (["--nodes", "-1"], "'-1' is not a number of nodes: write a whole number from 0"),
        (["--nodes", "two"], "'two' is not a number of nodes: write a whole number from 0"),
        (["--port", "65536"], "'65536' is not a port: write a number from 0 to 65535"),
        (["--resource", "gpu"], "write NAME=AMOUNT"),
    ],
)
def test_invalid_flags_are_refused_with_an_example(
    flags: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", *flags])
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_the_demo_ends_on_a_signal() -> None:
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [*COMMAND, "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "train-0" in line:
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")
    assert out.endswith("stopped: nothing is left running\n")
