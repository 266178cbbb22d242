from pathlib import Path

import pytest

from volcano_py.conf.loader import built_in_conf, load_conf, parse_conf
from volcano_py.conf.schema import FLAGS, OFF_BY_DEFAULT, ConfError, Where

SAMPLE = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources.nvidia.com/gpu: 2
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: false
"""


def parse(text):
    return parse_conf(text, "test.conf")


def test_actions_and_tiers_keep_their_order():
    conf = parse(SAMPLE)

    assert conf.actions == ("enqueue", "allocate")
    assert [[plugin.name for plugin in tier] for tier in conf.tiers] == [["priority", "gang"], ["binpack"]]


def test_every_plugin_knows_its_file_and_line():
    conf = parse(SAMPLE)

    assert conf.tiers[0][1].where == Where("test.conf", 5)
    assert conf.tiers[1][0].where == Where("test.conf", 8)
    assert str(conf.configurations[0].where) == "test.conf:13"


def test_every_argument_knows_its_line():
    conf = parse(SAMPLE)

    assert conf.tiers[1][0].places["binpack.resources.nvidia.com/gpu"] == Where("test.conf", 11)
    assert conf.configurations[0].places["predicateErrorCacheEnable"] == Where("test.conf", 15)


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        pytest.param("argument binpack.weight is -1", 10, id="after-the-word-argument"),
        pytest.param("argument binpack.weight: no", 10, id="before-a-colon"),
        pytest.param("binpack.weight[cpu]: no", 10, id="an-entry-of-it"),
        pytest.param("argument binpack.cpu is -1", 8, id="an-argument-that-is-not-there"),
        pytest.param("no binpack.weight", 8, id="elsewhere-in-the-text"),
        pytest.param("", 8, id="no-text"),
    ],
)
def test_a_message_that_begins_with_an_argument_has_its_line(problem, line):
    assert parse(SAMPLE).tiers[1][0].where_of(problem) == Where("test.conf", line)


def test_arguments_keep_their_keys_and_types():
    assert parse(SAMPLE).tiers[1][0].arguments == {"binpack.weight": 10, "binpack.resources.nvidia.com/gpu": 2}


def test_action_arguments_are_found_by_name():
    conf = parse(SAMPLE)

    assert conf.action_arguments("allocate") == {"predicateErrorCacheEnable": False}
    assert conf.action_arguments("enqueue") is None


def test_a_flag_that_is_absent_is_on_except_three():
    plugin = parse("actions: allocate\ntiers: [{plugins: [{name: test}]}]").tiers[0][0]

    assert (
        {flag for flag in FLAGS if not plugin.enabled(flag)}
        == OFF_BY_DEFAULT
        == {
            "enableHierarchy",
            "enableNamespaceOrder",
            "enabledClusterOrder",
        }
    )


def test_an_explicit_flag_overrides_its_default():
    off = "".join(f"    {flag}: false\n" for flag in sorted(FLAGS))
    plugin = parse(f"actions: allocate\ntiers:\n- plugins:\n  - name: test\n{off}").tiers[0][0]

    assert not any(plugin.enabled(flag) for flag in FLAGS)


@pytest.mark.parametrize("written", ["yes", "on", "y", "True", "TRUE"])
def test_flags_take_every_boolean_of_yaml_1_1(written):
    conf = parse(f"actions: a\ntiers: [{{plugins: [{{name: drf, enableHierarchy: {written}}}]}}]")

    assert conf.tiers[0][0].enabled("enableHierarchy")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("5", 5, id="integer"),
        pytest.param("5.0", 5.0, id="whole-float-stays-a-float"),
        pytest.param("1e3", 1000.0, id="exponent-without-a-dot"),
        pytest.param("-.5", -0.5, id="float-without-a-leading-zero"),
        pytest.param(".inf", float("inf"), id="infinity"),
        pytest.param("0x1f", 31, id="hexadecimal"),
        pytest.param("010", 8, id="octal"),
        pytest.param("0b11", 3, id="binary"),
        pytest.param("1_000", 1000, id="underscores"),
        pytest.param("12:30", "12:30", id="a-time-is-text"),
        pytest.param("2024-01-01", "2024-01-01", id="a-date-is-text"),
        pytest.param("'10'", "10", id="quoted-number-is-text"),
        pytest.param("y", True, id="y-is-true"),
        pytest.param("~", None, id="null"),
        pytest.param("[a, {b: 1}]", ["a", {"b": 1}], id="nested"),
        pytest.param("089", 89.0, id="not-octal-after-all"),
    ],
)
def test_scalars_are_read_as_volcano_reads_them(written, expected):
    value = parse(f"actions: a\nconfigurations: [{{name: a, arguments: {{key: {written}}}}}]").configurations[0]

    assert value.arguments == {"key": expected}
    assert type(value.arguments["key"]) is type(expected)


def test_entries_may_be_taken_over_from_an_anchor():
    conf = parse(
        "actions: a\nconfigurations:\n- name: a\n  arguments: &base {x: 1, y: 2}\n"
        "- name: b\n  arguments:\n    <<: *base\n    y: 3\n"
    )

    assert conf.action_arguments("b") == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "test.conf:1: actions is missing", id="empty"),
        pytest.param("actions:\ntiers: []", "test.conf:1: actions is missing", id="actions-left-empty"),
        pytest.param('\nactions: "enqueue,, allocate"', "test.conf:2: actions has an empty name", id="empty-action"),
        pytest.param("actions: [enqueue]", "test.conf:1: actions must be text, not a list", id="actions-a-list"),
        pytest.param("just text", "test.conf:1: the configuration must be a mapping", id="no-mapping"),
        pytest.param("actions: a\ntiers: gang", "test.conf:2: tiers must be a list, not 'gang'", id="tiers-text"),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - gang",
            "test.conf:4: tiers[0].plugins[0] must be a mapping of keys to values, not 'gang'",
            id="plugin-without-name-key",
        ),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - enableJobOrder: true",
            "test.conf:4: tiers[0].plugins[0].name is missing",
            id="plugin-without-a-name",
        ),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: maybe",
            "test.conf:5: tiers[0].plugins[0].enableJobOrder must be true or false, not 'maybe'",
            id="flag-not-a-boolean",
        ),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: gang",
            "test.conf:6: tiers[1].plugins[0].name: plugin gang is already in line 4",
            id="plugin-twice",
        ),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - name: gang\n    arguments: [1]",
            "test.conf:5: tiers[0].plugins[0].arguments must be a mapping",
            id="arguments-a-list",
        ),
        pytest.param(
            "actions: a\nconfigurations:\n- arguments: {}", "test.conf:3: configurations[0].name", id="nameless"
        ),
        pytest.param("actions: a\nmetrics: {type: [x]}", "test.conf:2: metrics.type must be text", id="metrics-list"),
        pytest.param("actions: a\ntiers: [}", "test.conf:2: this is not YAML", id="broken-yaml"),
        pytest.param(
            "actions: a\n---\nactions: b", "test.conf:2: the file has two documents, and the second", id="two-documents"
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n    actions: a\n",
            "test.conf:2: this is a ConfigMap: give the text under data[volcano-scheduler.conf] as a file of its own",
            id="config-map",
        ),
        pytest.param("kind: ConfigMap", "test.conf:1: this is a ConfigMap: give the text under data as", id="no-data"),
        pytest.param("actions: a\nmetrics: &loop\n  <<: *loop", "an anchor contains itself", id="endless-anchor"),
    ],
)
def test_an_invalid_structure_is_refused_with_its_line(text, message):
    with pytest.raises(ConfError) as caught:
        parse(text)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        pytest.param(
            "actions: a\nteirs: []", "test.conf:2: unknown key teirs is ignored; did you mean tiers?", id="top"
        ),
        pytest.param(
            "actions: a\ntiers:\n- plugins:\n  - name: gang\n    enabledJobOrder: false",
            "test.conf:5: unknown key tiers[0].plugins[0] (gang).enabledJobOrder is ignored; did you mean "
            "enableJobOrder?",
            id="flag-spelt-the-other-way",
        ),
        pytest.param(
            "actions: a\nactions: b",
            "test.conf:2: actions is repeated here; the entry in line 1 is ignored",
            id="key-twice",
        ),
    ],
)
def test_ignored_parts_are_warned_about(text, warning):
    assert parse(text).warnings == (warning,)


def test_the_built_in_configuration_is_volcanos():
    conf = built_in_conf()

    assert conf.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in conf.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert conf.warnings == ()


def test_a_file_is_named_in_its_errors(tmp_path: Path):
    path = tmp_path / "scheduler.conf"
    path.write_text("tiers: []\n")

    with pytest.raises(ConfError, match=f"{path}:1: actions is missing"):
        load_conf(path)


def test_for_a_missing_file_the_error_names_the_flag_to_check(tmp_path: Path):
    with pytest.raises(ConfError, match="No such file or directory; check --scheduler-conf"):
        load_conf(tmp_path / "absent.conf")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path):
    path = tmp_path / "scheduler.conf"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfError, match="is not UTF-8 text"):
        load_conf(path)
