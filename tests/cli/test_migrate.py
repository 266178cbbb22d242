"""`volcano-py migrate check` as users call it, and what our programs say about flags of Volcano."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from rich.console import Console

from tests.migration import ordinary
from tests.migration.copies import Copy
from tests.migration.plants import PLANTS
from volcano_py.apiserver import ApiServer
from volcano_py.cli.migrate_flags import judge_flag
from volcano_py.cli.migrate_report import print_report, summary
from volcano_py.cli.volcano_py import main
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, QUEUES
from volcano_py.local.manifests import definitions
from volcano_py.migration.findings import Finding, Group, Ref, Report
from volcano_py.migration.programs import CONTROLLERS, SCHEDULER, WEBHOOKS, Given
from volcano_py.migration.workloads import Effect


async def test_the_command_looks_at_a_server_and_its_code_says_whether_something_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as user:
        for definition in definitions():
            await user.create(CUSTOM_RESOURCE_DEFINITIONS, definition, dict)
        queue = ordinary.queue("strict", dequeueStrategy="fifo")
        await user.create(QUEUES, queue, dict)
        server.requests.reset()

        code = await asyncio.to_thread(main, ["migrate", "check", "--master", server.url, "-o", "json"])

        assert code == 1
        assert {verb for verb, _ in server.requests.snapshot()} == {"list"}
    found = json.loads(capsys.readouterr().out)["findings"]
    assert ["Queue", "strict"] in [[one["object"]["kind"], one["object"]["name"]] for one in found]


@pytest.mark.parametrize(
    ("program", "flag", "value", "effect"),
    [
        pytest.param(SCHEDULER, "schedule-period", "2s", Effect.WORKS, id="implemented"),
        pytest.param(SCHEDULER, "schedule-period", "often", Effect.REFUSED, id="a-value-of-another-type"),
        pytest.param(SCHEDULER, "node-selector", "a:b", Effect.REFUSED, id="refused"),
        pytest.param(SCHEDULER, "percentage-nodes-to-find", "5", Effect.NONE, id="without-effect"),
        pytest.param(SCHEDULER, "v", "5", Effect.NONE, id="one-letter"),
        pytest.param(SCHEDULER, "nobody-knows", "1", Effect.UNKNOWN, id="unknown"),
        pytest.param(SCHEDULER, "leader-elect-resource-lock", "configmaps", Effect.WORKS, id="judged-with-other-flags"),
        pytest.param(CONTROLLERS, "worker-threads", "9", Effect.WORKS, id="controllers"),
        pytest.param(CONTROLLERS, "ca-cert-file", "/x", Effect.REFUSED, id="controllers-refused"),
        pytest.param(WEBHOOKS, "max-queue-depth", "x", Effect.REFUSED, id="webhooks-wrong"),
        pytest.param(SCHEDULER, "$MULTI_SCHEDULER_ENABLE", "true", Effect.REFUSED, id="variable-refused"),
        pytest.param(SCHEDULER, "$MULTI_SCHEDULER_ENABLE", "false", Effect.WORKS, id="variable-off"),
        pytest.param(SCHEDULER, "$BATCH_BIND_NUM", "9", Effect.NONE, id="variable-without-effect"),
        pytest.param(SCHEDULER, "feature-gates", "DRAAdminAccess=true", Effect.NONE, id="feature"),
        pytest.param(SCHEDULER, "feature-gates", "WorkLoadSupport=maybe", Effect.REFUSED, id="feature-refused"),
    ],
)
def test_a_flag_is_judged_as_our_program_would(program: str, flag: str, value: str, effect: Effect) -> None:
    verdict = judge_flag(program, Given(flag, value))
    assert verdict.effect is effect
    assert verdict.why or effect in (Effect.WORKS, Effect.UNKNOWN)


def printed(report: Report, width: int, *, verbose: bool = False) -> list[str]:
    out = io.StringIO()
    print_report(Console(file=out, width=width, highlight=False, markup=False), report, verbose=verbose)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_report_fits_into_the_terminal_and_loses_no_word(width: int) -> None:
    copy = Copy()
    for plant in PLANTS[:20]:
        plant.change(copy)
    report = copy.check()

    lines = printed(report, width, verbose=True)

    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    words = {word for line in lines for word in line.split()}
    for one in report.findings:
        assert set(one.advice.split()) <= words | {
            part for word in one.advice.split() for part in [word] if len(word) > 30
        }


def test_many_findings_of_one_kind_are_counted_and_verbose_shows_all() -> None:
    report = Report()
    for number in range(50):
        ref = Ref("Job", f"j{number}", "team")
        report.judged(ref, [Finding(Group.MISSING, "numa-policy", ref, "it has a policy", "do without")])

    assert len([line for line in printed(report, 80) if "it has a policy" in line]) == 20
    assert "  and 30 more of Job with numa-policy: --verbose shows them" in printed(report, 80)
    assert len([line for line in printed(report, 80, verbose=True) if "it has a policy" in line]) == 50
    assert summary(report) == "can be switched: 50 objects looked at, 0 same, 50 missing"


def test_the_summary_counts_in_words_that_fit_the_number() -> None:
    report = Report()
    for name, group in (("a", Group.DIFFERS), ("b", Group.DIFFERS), ("c", Group.BLOCKS)):
        ref = Ref("Job", name, "team")
        report.judged(ref, [Finding(group, "rule", ref, "what", "advice")])

    assert summary(report) == "cannot be switched yet: 3 objects looked at, 0 same, 1 blocks, 2 differ"
