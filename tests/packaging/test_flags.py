"""Volcano's command line: every flag has its answer, in the code as in docs/flags.md."""

import argparse
from collections.abc import Callable

import pytest

from tests.packaging.pages import DOCS, rows
from volcano_py.api.keys import QUEUE_ADMISSION
from volcano_py.cli import vc_controller_manager
from volcano_py.cli.feature_gates import CONTROLLER_FEATURES, SCHEDULER_FEATURES, Feature, read_feature_gates
from volcano_py.cli.vc_controller_manager import controllers_parser
from volcano_py.cli.vc_scheduler import _options, main, scheduler_parser
from volcano_py.cli.vc_webhook_manager import webhooks_parser
from volcano_py.cli.volcano_flags import (
    ADMISSION_FLAGS,
    CONTROLLER_FLAGS,
    VOLCANO_FLAGS,
    VOLCANO_VARIABLES,
    IgnoredFlag,
    VolcanoFlag,
    ignored_flags,
    in_one_line,
    with_dashes,
)
from volcano_py.kube.lease import LeaseOptions
from volcano_py.runtime.options import OptionError

PAGE = DOCS / "flags.md"
OFF = {QUEUE_ADMISSION: False}

# The lists of Volcano 1.8 and later, by area. klog's flags are written with dashes.
VOLCANOS = """
    master kubeconfig ca-cert-file tls-cert-file tls-private-key-file scheduler-name scheduler-conf schedule-period
    resync-period default-queue version listen-address healthz-address enable-healthz enable-metrics enable-pprof
    priority-class kube-api-qps kube-api-burst minimum-feasible-nodes minimum-percentage-nodes-to-find
    percentage-nodes-to-find plugins-dir csi-storage node-selector cache-dumper cache-dump-dir node-worker-threads
    gate-removal-worker-num ignored-provisioners resource-sync-timeout disable-default-scheduler-config
    unschedulable-job-cache-max-skip-duration
    scheduler-sharding-mode scheduler-sharding-name lock-object-namespace log-flush-frequency feature-gates
    leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period
    leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace
    v vmodule logtostderr alsologtostderr stderrthreshold log-dir log-file log-file-max-size log-backtrace-at
    skip-headers skip-log-headers add-dir-header one-output alsologtostderrthreshold legacy-stderr-threshold-behavior
"""
OF_CONTROLLERS = """
    master kubeconfig ca-cert-file tls-cert-file tls-private-key-file kube-api-qps kube-api-burst version
    worker-threads worker-threads-for-cronjob worker-threads-for-podgroup worker-threads-for-gc worker-threads-for-queue
    scheduler-name max-requeue-num healthz-address enable-healthz enable-metrics listen-address
    inherit-owner-annotations controllers lock-object-namespace log-flush-frequency feature-gates
    sharding-configmap sharding-configmap-namespace
    scheduler-configs shard-sync-period enable-node-event-trigger detection-period-of-dependson-task
    leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period
    leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace
    v vmodule logtostderr alsologtostderr stderrthreshold log-dir log-file log-file-max-size log-backtrace-at
    skip-headers skip-log-headers add-dir-header one-output alsologtostderrthreshold legacy-stderr-threshold-behavior
"""
OF_WEBHOOKS = """
    master kubeconfig ca-cert-file tls-cert-file tls-private-key-file listen-address port version
    webhook-namespace webhook-service-name webhook-url enabled-admission scheduler-name admission-conf
    enable-healthz healthz-address graceful-shutdown-time enable-queue-allocated-pods-check max-queue-depth
    enable-root-queue-protection enable-cascade-child-queue-close enable-queue-closed-before-delete-check
    kube-api-qps kube-api-burst feature-gates log-flush-frequency
    v vmodule logtostderr alsologtostderr stderrthreshold log-dir log-file log-file-max-size log-backtrace-at
    skip-headers skip-log-headers add-dir-header one-output alsologtostderrthreshold legacy-stderr-threshold-behavior
"""
VARIABLES = "BATCH_BIND_NUM MULTI_SCHEDULER_ENABLE SCHEDULER_POD_NAME SCHEDULER_NUM PANIC_ON_ERROR DEBUG_SOCKET_DIR"


def judged(*arguments: str, **environment: str) -> list[IgnoredFlag]:
    return ignored_flags(scheduler_parser().parse_args(with_dashes(arguments)), environment)


def judged_for_controllers(*arguments: str) -> list[IgnoredFlag]:
    return ignored_flags(controllers_parser().parse_args(with_dashes(arguments)), {}, CONTROLLER_FLAGS)


def judged_for_webhooks(*arguments: str) -> list[IgnoredFlag]:
    return ignored_flags(webhooks_parser().parse_args(with_dashes(arguments)), {}, ADMISSION_FLAGS)


def implemented(parser: argparse.ArgumentParser | None = None) -> set[str]:
    """Return the flags that `--help` shows, by default the scheduler's."""
    return {
        action.option_strings[-1]
        for action in (parser or scheduler_parser())._actions
        if action.help != argparse.SUPPRESS and action.option_strings
    }


def otherwise(flag: VolcanoFlag) -> str:
    """Return what the page says of values that ask for something else than happens here."""
    return "refused" if flag.refused else "warning with this reason" if flag.explained else "warning"


def an_argument(flag: VolcanoFlag, value: str) -> str:
    return f"-v={value}" if flag.name == "v" else f"--{flag.name}={value}"


def test_every_flag_of_volcano_is_known():
    def known(parser: argparse.ArgumentParser) -> set[str]:
        return {name.lstrip("-") for action in parser._actions for name in action.option_strings}

    assert set(VOLCANOS.split()) - known(scheduler_parser()) == set()
    assert set(OF_CONTROLLERS.split()) - known(controllers_parser()) == set()
    assert set(OF_WEBHOOKS.split()) - known(webhooks_parser()) == set()
    assert {variable.name for variable in VOLCANO_VARIABLES} == set(VARIABLES.split())


def test_no_flag_is_both_implemented_and_ignored():
    assert implemented() & {f"--{flag.name}" for flag in VOLCANO_FLAGS} == set()
    assert implemented(controllers_parser()) & {f"--{flag.name}" for flag in CONTROLLER_FLAGS} == set()
    assert implemented(webhooks_parser()) & {f"--{flag.name}" for flag in ADMISSION_FLAGS} == set()


def test_the_page_lists_what_help_shows_and_no_more():
    of_volcano = {cells[0].strip("`") for cells in rows(PAGE, "Implemented")}
    ours = {cells[0].strip("`") for cells in rows(PAGE, "Not in Volcano")}

    assert of_volcano | ours == implemented()
    assert of_volcano == {name for name in implemented() if name[2:] in VOLCANOS.split()}


@pytest.mark.parametrize(
    ("program", "parser"), [("vc-controller-manager", controllers_parser), ("vc-webhook-manager", webhooks_parser)]
)
def test_the_page_lists_the_flags_of_the_other_programs(program: str, parser: Callable[[], argparse.ArgumentParser]):
    listed = {cells[0].strip("`") for cells in rows(PAGE, f"Flags of {program}")}

    assert listed == implemented(parser())


@pytest.mark.parametrize(
    ("section", "flags"),
    [
        ("Accepted with a warning, or refused", VOLCANO_FLAGS),
        ("Environment variables of Volcano", VOLCANO_VARIABLES),
        ("vc-controller-manager: flags accepted with a warning, or refused", CONTROLLER_FLAGS),
        ("vc-webhook-manager: flags accepted with a warning, or refused", ADMISSION_FLAGS),
    ],
)
def test_the_page_says_of_each_flag_what_the_program_says(section: str, flags: tuple[VolcanoFlag, ...]):
    shown = {
        cells[0].strip("`").lstrip("-"): (cells[2], cells[1].strip("`"), cells[3]) for cells in rows(PAGE, section)
    }

    assert shown == {
        flag.name: (
            otherwise(flag),
            "empty" if flag.as_here == "" else flag.as_here or "",
            flag.meaning,
        )
        for flag in flags
    }


# Volcano's own, and those of Kubernetes 1.36 by which the answers of its scheduler libraries differ.
VOLCANOS_FEATURES = """
    WorkLoadSupport VolcanoJobSupport PodDisruptionBudgetsSupport QueueCommandSync PriorityClass CSIStorage
    ResourceTopology CronVolcanoJobSupport SchedulingGatesQueueAdmission
    NodeInclusionPolicyInPodTopologySpread MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge PodLevelResources InPlacePodVerticalScaling SidecarContainers
    DynamicResourceAllocation DRAExtendedResource DRAPrioritizedList DRAConsumableCapacity DRADeviceTaints
    DRAPartitionableDevices DRAAdminAccess DRASchedulerFilterTimeout VolumeAttributesClass NodeDeclaredFeatures
    TaintTolerationComparisonOperators StorageCapacityScoring VolumeLimitScaling DRANodeAllocatableResources
    GangScheduling GenericWorkload
"""


def test_every_feature_of_volcano_is_known():
    known = {feature.name for feature in (*SCHEDULER_FEATURES, *CONTROLLER_FEATURES)}

    assert set(VOLCANOS_FEATURES.split()) - known == set()


@pytest.mark.parametrize(
    ("section", "features"),
    [
        pytest.param("Features of vc-scheduler", SCHEDULER_FEATURES, id="scheduler"),
        pytest.param("Features of vc-controller-manager", CONTROLLER_FEATURES, id="controllers"),
    ],
)
def test_the_page_says_of_each_feature_what_the_program_says(section: str, features: tuple[Feature, ...]):
    assert [(cells[0].strip("`"), cells[1], cells[2]) for cells in rows(PAGE, section)] == [
        (one.name, "on" if one.as_here else "off", one.otherwise or "it can be switched") for one in features
    ]


@pytest.mark.parametrize("feature", SCHEDULER_FEATURES, ids=lambda feature: feature.name)
def test_a_feature_is_switched_or_its_other_value_is_warned_about(feature: Feature):
    for value in (True, False):
        enabled, aside = read_feature_gates([f"{feature.name}={str(value).lower()}"], SCHEDULER_FEATURES)
        if value == feature.as_here or not feature.otherwise:
            assert (enabled[feature.name], aside) == (value, [])
        else:
            named = IgnoredFlag(f"--feature-gates={feature.name}={str(value).lower()}", feature.otherwise)
            assert (enabled[feature.name], aside) == (feature.as_here, [named])


def test_the_last_value_of_a_feature_counts_and_those_of_other_programs_are_left_alone():
    texts = ["SchedulingGatesQueueAdmission=true, VolcanoJobSupport=true", "SchedulingGatesQueueAdmission=False,"]
    enabled, aside = read_feature_gates(texts, SCHEDULER_FEATURES)

    assert not enabled[QUEUE_ADMISSION]
    assert aside == []


def test_an_unknown_feature_is_warned_about():
    _, aside = read_feature_gates(["SchedulingGateQueueAdmission=true"], SCHEDULER_FEATURES)

    assert aside == [IgnoredFlag("--feature-gates=SchedulingGateQueueAdmission=true", "unknown feature")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("PriorityClass", "'PriorityClass' is neither true nor false: write PriorityClass=true"),
        ("PriorityClass=yes", "PriorityClass: 'yes' is neither true nor false"),
    ],
)
def test_a_feature_that_is_neither_on_nor_off_is_refused(text: str, problem: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([f"--feature-gates={text}"])

    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "judge"),
    [
        pytest.param(flag, judge, id=f"{program}-{flag.name}")
        for program, judge, table in (
            ("scheduler", judged, VOLCANO_FLAGS),
            ("controllers", judged_for_controllers, CONTROLLER_FLAGS),
            ("webhooks", judged_for_webhooks, ADMISSION_FLAGS),
        )
        for flag in table
    ],
)
def test_a_flag_of_volcano_is_in_the_warning_or_refused_with_its_meaning(
    flag: VolcanoFlag, judge: Callable[..., list[IgnoredFlag]]
):
    value = {"true": "false", "false": "true"}.get(flag.as_here or "", "true") if flag.boolean else "7"

    if flag.refused:
        with pytest.raises(OptionError) as refusal:
            judge(an_argument(flag, value))
        assert f"{flag.name}={value}: {flag.meaning}" in str(refusal.value)
    else:
        shown = an_argument(flag, value).partition("=")[0]
        assert judge(an_argument(flag, value)) == [IgnoredFlag(shown, flag.meaning if flag.explained else "")]


@pytest.mark.parametrize(
    "flag", [flag for flag in VOLCANO_FLAGS if flag.as_here is not None], ids=lambda flag: flag.name
)
def test_a_value_equal_to_the_behaviour_is_accepted_without_a_warning(flag: VolcanoFlag):
    assert judged(an_argument(flag, flag.as_here or "")) == []


def test_a_boolean_flag_alone_is_true():
    assert judged("--enable-pprof") == judged("--enable-pprof=T") == [IgnoredFlag("--enable-pprof")]


def test_one_warning_names_flags_alone_first_and_then_with_each_reason_once():
    found = [
        IgnoredFlag("--a", "no volumes"),
        IgnoredFlag("--b"),
        IgnoredFlag("--c", "no dump"),
        IgnoredFlag("$D", "no volumes"),
    ]

    assert in_one_line(found) == ["--b", "--a, $D (no volumes)", "--c (no dump)"]
    assert in_one_line([]) == []


def test_underscores_are_dashes_in_names_and_not_in_values():
    flags = scheduler_parser().parse_args(with_dashes(["--scheduler_conf=/etc/my_conf", "--log_dir", "/a_b"]))

    assert (flags.scheduler_conf, flags.volcano_log_dir) == ("/etc/my_conf", ["/a_b"])


def test_the_arguments_of_volcanos_own_deployment_are_accepted():
    arguments = [
        "--logtostderr",
        "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=2000",
        "--schedule-period=1s",
        "--node-worker-threads=20",
        "-v=3",
    ]

    listed = in_one_line(judged(*arguments, DEBUG_SOCKET_DIR="/tmp/klog-socks"))

    assert listed == ["--kube-api-qps", "--kube-api-burst", "--node-worker-threads", "-v", "$DEBUG_SOCKET_DIR"]


def test_the_arguments_of_volcanos_own_controllers_are_accepted():
    arguments = [
        "--logtostderr",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--leader-elect=false",
        "--kube-api-qps=50",
        "--kube-api-burst=100",
        "--worker-threads=3",
        "--worker-threads-for-gc=5",
        "--worker-threads-for-podgroup=5",
        "--controllers=*,-sharding-controller",
        "--sharding-configmap=volcano-sharding-configmap",
        "--sharding-configmap-namespace=volcano-system",
        "-v=4",
    ]

    assert in_one_line(judged_for_controllers(*arguments)) == [
        "--sharding-configmap",
        "--sharding-configmap-namespace",
        "-v",
    ]


def test_the_arguments_of_volcanos_own_webhooks_are_accepted():
    arguments = [
        "--logtostderr",
        "--enabled-admission=/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate",
        "--tls-cert-file=/admission.local.config/certificates/tls.crt",
        "--tls-private-key-file=/admission.local.config/certificates/tls.key",
        "--ca-cert-file=/admission.local.config/certificates/ca.crt",
        "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
        "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service",
        "--enable-healthz=true",
        "--port=8443",
        "--kube-api-qps=50",
        "-v=4",
    ]

    assert in_one_line(judged_for_webhooks(*arguments)) == ["--kube-api-qps", "-v"]


@pytest.mark.parametrize(("arguments", "jobs"), [([], 32), (["--worker-threads=3"], 3)])
def test_jobs_at_once_are_limited_by_worker_threads_and_writes_by_nothing(arguments: list[str], jobs: int):
    options = vc_controller_manager._options(controllers_parser().parse_args(arguments))

    assert (options.job_workers, options.rate_per_s) == (jobs, None)


def test_the_election_of_the_controllers_is_volcanos_by_default():
    options = vc_controller_manager._options(controllers_parser().parse_args([]))

    assert options.lease == LeaseOptions("vc-controller-manager", "volcano-system", 15.0, 10.0, 2.0)


def test_the_election_is_volcanos_by_default():
    flags = scheduler_parser().parse_args([])

    assert flags.leader_elect
    assert _options(flags, OFF).lease == LeaseOptions("volcano", "volcano-system", 15.0, 10.0, 2.0)
    assert _options(scheduler_parser().parse_args(["--leader-elect=false"]), OFF).lease is None


def test_sharding_by_environment_variables_is_refused():
    assert judged(MULTI_SCHEDULER_ENABLE="false") == []
    with pytest.raises(OptionError, match="MULTI_SCHEDULER_ENABLE"):
        judged(MULTI_SCHEDULER_ENABLE="true")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--plugins-dir=/x"], "names no plugin of yours: --scheduler-conf is needed", id="plugins"),
        pytest.param(["--enable-pprof=maybe"], "'maybe' is neither true nor false", id="no-truth-value"),
        pytest.param(
            ["--scheduler-name=a", "--scheduler-name=b"], "only one name is possible, not a, b", id="two-names"
        ),
        pytest.param(["--scheduler-name="], "argument --scheduler-name: '' is not a name", id="no-name"),
        pytest.param(["--default-queue= "], "argument --default-queue: ' ' is not a name", id="no-queue"),
        pytest.param(["--disable-default-scheduler-config"], "--scheduler-conf is needed", id="no-conf"),
        pytest.param(
            ["--leader-elect-renew-deadline=20s"], "must be longer than the renew deadline", id="lease-too-short"
        ),
        pytest.param(["--leader-elect-resource-lock=endpoints"], "write leases or leave it out", id="no-lease"),
        pytest.param(["--no-such-flag"], "unrecognized arguments: --no-such-flag", id="nobodys"),
    ],
)
def test_a_refused_flag_ends_the_process_with_code_2_and_a_reason(
    capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
):
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 2
    assert problem in capsys.readouterr().err
