import pytest

from volcano_py.conf.loader import parse_conf
from volcano_py.conf.node_metrics import NodeMetricsConf, read_node_metrics
from volcano_py.scheduler import resolve


def test_every_setting_is_read() -> None:
    said = {
        "type": "elasticsearch",
        "address": "https://es:9200/",
        "interval": "1m",
        "tls.insecureSkipVerify": "true",
        "elasticsearch.index": "beats",
        "elasticsearch.username": "u",
        "elasticsearch.password": "p",
        "elasticsearch.hostnameFieldName": "host.name",
    }
    expected = NodeMetricsConf("elasticsearch", "https://es:9200", 60.0, False, "beats", "u", "p", "host.name")

    assert read_node_metrics(said) == (expected, [])
    assert "password" not in repr(expected)


def test_sections_within_the_section_are_keys_with_dots() -> None:
    conf = parse_conf(
        "actions: allocate\nmetrics:\n  type: elasticsearch\n  address: https://es:9200\n"
        "  tls:\n    insecureSkipVerify: true\n"
        "  elasticsearch:\n    index: beats\n    password: secret\n    hostname: host.name\n",
        "c.yaml",
    )
    expected = NodeMetricsConf("elasticsearch", "https://es:9200", verify=False, index="beats", password="secret")

    policy = resolve(conf)

    assert policy.node_metrics == expected
    assert policy.warnings == (
        "c.yaml:10: metrics.elasticsearch.hostname is unknown and ignored; did you mean elasticsearch.username?",
    )


def test_absent_settings_have_their_defaults() -> None:
    assert read_node_metrics({"type": "prometheus", "address": "http://p"}) == (
        NodeMetricsConf("prometheus", "http://p"),
        [],
    )
    assert read_node_metrics({"type": "prometheus_adaptor"}) == (NodeMetricsConf("prometheus_adaptor"), [])
    assert read_node_metrics({}) == (None, [])


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            {"type": "graphite"},
            "metrics.type is 'graphite'; known types: prometheus, prometheus_adaptor, elasticsearch",
        ),
        ({"type": "prometheus"}, "metrics.address is ''"),
        ({"type": "prometheus", "address": "prometheus:9090"}, "write a URL such as http://prometheus:9090"),
    ],
)
def test_invalid_settings_give_no_source_and_a_warning(said: dict[str, str], problem: str) -> None:
    found, problems = read_node_metrics(said)

    assert found is None
    assert problem in problems[0]


@pytest.mark.parametrize("interval", ["soon", "0s", "-3s"])
def test_an_invalid_interval_is_reported(interval: str) -> None:
    found, problems = read_node_metrics({"type": "prometheus_adaptor", "interval": interval})

    assert found is not None
    assert found.interval_s == 30.0
    assert f"metrics.interval is {interval!r}" in problems[0]


def test_a_policy_has_the_source_and_its_warnings() -> None:
    text = "actions: allocate\nmetrics:\n  type: prometheus_adaptor\n  intervall: 1m\n"
    policy = resolve(parse_conf(text, "f"))

    assert policy.node_metrics == NodeMetricsConf("prometheus_adaptor")
    assert policy.warnings == ("f:4: metrics.intervall is unknown and ignored; did you mean interval?",)


def test_a_setting_that_is_missing_is_reported_with_the_line_of_the_section() -> None:
    policy = resolve(parse_conf("actions: allocate\nmetrics:\n  type: prometheus\n", "f"))

    assert [warning.partition(" is")[0] for warning in policy.warnings] == ["f:2: metrics.address"]
