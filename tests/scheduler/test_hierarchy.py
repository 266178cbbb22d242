import pytest

from tests.scheduler.running import a_policy
from volcano_py.conf.schema import ConfError

CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: drf
    enableHierarchy: true
"""


def test_a_hierarchy_switch_on_a_plugin_without_hierarchy_is_a_warning() -> None:
    policy = a_policy(CONF.replace("drf", "binpack"))

    assert policy.warnings[0].startswith(
        "test.yaml:4: plugin binpack: enableHierarchy: it knows no hierarchy of queues"
    )


def test_without_the_switch_nobody_is_warned() -> None:
    assert a_policy(CONF.replace("drf", "binpack").replace("true", "false")).warnings == ()


def test_drf_with_a_hierarchy_beside_proportion_is_refused() -> None:
    with pytest.raises(ConfError, match=r"^test\.yaml:4: proportion and drf with hierarchy enabled conflicts"):
        a_policy(CONF + "  - name: proportion\n")


def test_drf_with_a_hierarchy_and_proportion_in_another_tier_are_not_refused() -> None:
    assert a_policy(CONF + "- plugins:\n  - name: proportion\n").missing == ()
