"""A configuration that names a plugin nobody knows: refused at the start, and left aside while the scheduler runs."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.daemon.cluster import CONF, placed, put_job, put_node, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.cli.vc_scheduler import main
from volcano_py.conf.reload import ConfFile
from volcano_py.daemon.configuration import Configuration

BROKEN = CONF.replace("name: gang", "name: gnag")


def says_what_is_wrong(problem: str, path: Path) -> bool:
    """Whether a message names file and line, the value, and what may stand there instead."""
    expected = f'{path}:5: unknown plugin "gnag"; did you mean gang? Known plugins: '
    return problem.startswith(expected) and all(name in problem for name in ("binpack", "gang", "priority"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.conf"


def test_the_scheduler_does_not_start_with_a_bad_configuration(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(BROKEN)

    assert main([f"--scheduler-conf={path}", "--log-format=json"]) == 2

    assert f'{path}:5: unknown plugin \\"gnag\\"; did you mean gang? Known plugins: ' in capsys.readouterr().err


@pytest.fixture
def configuration(path: Path) -> Configuration:
    path.write_text(CONF)
    return Configuration.of_file(ConfFile(path))


async def test_a_running_scheduler_keeps_the_last_good_configuration(
    server: ApiServer, path: Path, configuration: Configuration
) -> None:
    put_node(server, "n1", cpu=8)
    with capture_logs() as lines:
        async with scheduler(server.url, configuration=configuration, conf_poll_s=0.02) as running:
            await asyncio.to_thread(path.write_text, BROKEN)
            await until(lambda: running.metric("volcano_py_conf_refused"))
            put_job(server, "beside", 2)

            await until(lambda: len(placed(server)) == 2)
            error = configuration.shown()["lastError"]

    assert says_what_is_wrong(error["problem"], path)
    assert any(says_what_is_wrong(str(line.get("problem", "")), path) for line in lines)
