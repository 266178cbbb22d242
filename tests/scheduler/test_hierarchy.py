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


def test_a_hierarchy_of_queues_is_loudly_missing() -> None:
    policy = a_policy(CONF)

    assert policy.missing == ("plugin drf: enableHierarchy",)
    assert policy.warnings[0].startswith(
        "test.yaml:4: plugin drf: enableHierarchy: a hierarchy of queues does not exist"
    )


def test_without_the_switch_nothing_is_missing() -> None:
    assert a_policy(CONF.replace("true", "false")).missing == ()


def test_drf_with_a_hierarchy_beside_proportion_is_refused() -> None:
    with pytest.raises(ConfError, match=r"^test\.yaml:4: proportion and drf with hierarchy enabled conflicts"):
        a_policy(CONF + "  - name: proportion\n")


def test_drf_with_a_hierarchy_and_proportion_in_another_tier_are_not_refused() -> None:
    assert a_policy(CONF + "- plugins:\n  - name: proportion\n").missing == ("plugin drf: enableHierarchy",)
