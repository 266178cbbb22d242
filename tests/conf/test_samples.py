"""Every configuration that is offered to users can be used as it is."""

from pathlib import Path

import pytest
import yaml

from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.conf.loader import load_conf, parse_conf
from volcano_py.scheduler import resolve

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = sorted((REPOSITORY / "conf").glob("*.yaml"))
CONFIG_MAP = REPOSITORY / "manifests" / "deployment" / "configuration.yaml"


def config_map() -> str:
    return str(yaml.safe_load(CONFIG_MAP.read_text())["data"]["volcano-scheduler.conf"])


def test_there_are_samples():
    assert {path.stem for path in SAMPLES} >= {
        "gang",
        "binpack",
        "fair-share",
        "queue-tree",
        "built-in",
        "helm-default",
    }


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_loads_with_warnings_only_about_features_to_come(path: Path):
    conf = load_conf(path)
    policy = resolve(conf)

    assert conf.warnings == ()
    assert [warning for warning in policy.warnings if "is missing here" not in warning] == []
    assert policy.actions
    assert any(policy.tiers)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_begins_with_its_purpose(path: Path):
    assert path.read_text().startswith("# ")


def test_the_built_in_sample_is_the_built_in_configuration():
    assert yaml.safe_load((REPOSITORY / "conf" / "built-in.yaml").read_text()) == yaml.safe_load(BUILT_IN_CONF)


def test_the_installed_configuration_is_the_sample_of_the_helm_chart():
    installed = parse_conf(config_map(), "ConfigMap")

    assert installed.warnings == ()
    assert resolve(installed).tiers
    sample = (REPOSITORY / "conf" / "helm-default.yaml").read_text()
    assert yaml.safe_load(config_map()) == yaml.safe_load(sample)
