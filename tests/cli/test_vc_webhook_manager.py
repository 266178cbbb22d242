"""The vc-webhook-manager command as a process: flags, probes, reviews, signals, exit codes."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.admission.server.managing import bundles, free_port, put_configurations, put_namespace
from tests.cli.test_vc_controller_manager import command, ended
from tests.daemon.cluster import serve_definitions
from tests.daemon.test_process import asked, until_ready
from tests.effects.waiting import until
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.apiserver import ApiServer
from volcano_py.cli.vc_webhook_manager import main
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import QUEUES
from volcano_py.testing import a_queue, manifest

COMMAND = (sys.executable, "-m", "volcano_py.cli.vc_webhook_manager", "--log-format=json")


async def test_it_answers_with_volcanos_rules_and_ends_in_order() -> None:
    port, metrics, health = free_port(), free_port(), free_port()
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as user:
        serve_definitions(server)
        put_namespace(server)
        put_configurations(server)
        flags = (
            f"--master={server.url}",
            f"--port={port}",
            "--listen-address=127.0.0.1",
            f"--webhook-url=https://127.0.0.1:{port}",
            f"--metrics-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            f"--enabled-admission={','.join(WEBHOOKS)}",
            "--graceful-shutdown-time=1s",
            "--kube-api-qps=50",
        )
        async with command(*flags, program=COMMAND) as process:
            await until_ready(health)
            await until(lambda: "" not in bundles(server))
            made = await user.create(QUEUES, manifest(a_queue("good")), dict[str, Any])
            assert made["spec"]["reclaimable"] is True
            lost = {**manifest(a_queue("lost")), "spec": {"weight": 1, "parent": "nobody"}}
            with pytest.raises(errors.ApiError, match="denied the request: "):
                await user.create(QUEUES, lost, dict[str, Any])
            assert await asked(f"http://127.0.0.1:{health}/healthz") == (200, "ok\n")
            _, text = await asked(f"http://127.0.0.1:{metrics}/metrics")
            assert 'volcano_py_admission_review_seconds_count{path="/queues/validate",result="refused"} 1.0' in text

            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            code, log = await ended(process)

    assert code == 0, log
    assert "SIGHUP changes nothing here" in log
    assert "--kube-api-qps" in log
    assert "webhooks end" in log


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--webhook-url=https://a", "--enabled-admission=/jobs/mutilate"], "there is no webhook /jobs/mutilate"),
        ([], "--webhook-service-name and --webhook-namespace, or --webhook-url"),
        (["--webhook-url=a"], "write an address such as https://10.0.0.1:8443"),
        (["--webhook-url=https://a", "--tls-cert-file=x"], "a certificate needs all three files"),
        (["--webhook-url=https://a", "--max-queue-depth=0"], "'0' is not a depth"),
        (["--webhook-url=https://a", "--port=x"], "'x' is not a port"),
        (["--webhook-url=https://a", "--certificate-lifetime=1s"], "must be at least 30s"),
        (["--webhook-url=https://a", "--enable-root-queue-protection=perhaps"], "neither true nor false"),
    ],
)
def test_wrong_flags_are_refused(capsys: pytest.CaptureFixture[str], flags: list[str], problem: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(flags)

    assert end.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_faulty_configuration_is_reported_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "admission.conf"
    conf.write_text("resourceGroups: 7")
    address = "--master=http://127.0.0.1:1"

    assert main(["--log-format=json", address, "--webhook-url=https://a", f"--admission-conf={conf}"]) == 2
    assert "resourceGroups is not a list" in capsys.readouterr().err
