from typing import Any

import pytest

from tests.framework.sessions import a_session, job_row
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.session import Session
from volcano_py.model.rejections import Reason
from volcano_py.plugins.resourcequota import ResourceQuotas
from volcano_py.testing import Scenario, a_cluster, a_group, a_node, a_pod, a_quota


def session(*objects: Any) -> Session:
    return a_session(a_cluster(*objects).snapshot(), ResourceQuotas())


def answer(ssn: Session, name: str = "g1") -> str:
    plugin = ssn.hooks.plugins()[0]
    assert isinstance(plugin, ResourceQuotas)
    found = plugin.job_enqueueable(ssn.state.job(job_row(ssn, name)))
    return found.text if isinstance(found, Reason) else found.name


def enqueued(ssn: Session, name: str) -> None:
    ssn.hooks.job_enqueued(ssn.state.job(job_row(ssn, name)))


@pytest.mark.parametrize(
    ("minimum", "quota", "expected"),
    [
        pytest.param({"cpu": 2}, {"cpu": 2}, "PERMIT", id="as-much-as-there-is"),
        pytest.param(
            {"cpu": "2001m"},
            {"cpu": 2},
            "resource quota insufficient, requested: cpu=2.001, used: cpu=0, limited: cpu=2 "
            "(ResourceQuota default/quota)",
            id="more-than-there-is",
        ),
        pytest.param(
            {"cpu": 2, "memory": "3Gi", "pods": 3},
            {"cpu": 1, "memory": "8Gi", "pods": 2},
            "resource quota insufficient, requested: cpu=2,pods=3, used: cpu=0,pods=0, limited: cpu=1,pods=2 "
            "(ResourceQuota default/quota)",
            id="all-that-is-exceeded-is-named",
        ),
        pytest.param({"cpu": 9}, {"memory": "1Gi"}, "PERMIT", id="what-is-not-limited"),
        pytest.param({"cpu": 9}, {"requests.cpu": 1}, "PERMIT", id="another-name-for-the-same"),
        pytest.param(
            {"cpu": 2, "requests.cpu": 2, "requests.memory": "1Gi", "count/pods": 3},
            {"requests.cpu": "1500m", "requests.memory": "1Gi", "count/pods": 2},
            "resource quota insufficient, requested: count/pods=3,requests.cpu=2, used: count/pods=0,requests.cpu=0, "
            "limited: count/pods=2,requests.cpu=1.5 (ResourceQuota default/quota)",
            id="names-that-only-quotas-have",
        ),
        pytest.param({"cpu": 1}, {"cpu": 0}, "resource quota insufficient, requested: cpu=1", id="a-limit-of-nothing"),
        pytest.param({}, {"cpu": 0}, "PERMIT", id="asks-for-nothing"),
        pytest.param(None, {"cpu": 0}, "PERMIT", id="says-nothing"),
    ],
)
def test_a_job_is_enqueued_if_its_namespace_may_use_its_minimum_resources(
    minimum: dict[str, Any] | None, quota: dict[str, Any], expected: str
) -> None:
    assert answer(session(a_group(min_resources=minimum), a_quota(**quota))).startswith(expected)


def test_used_quota_and_jobs_enqueued_before_count() -> None:
    groups = [a_group(name, min_resources={"cpu": 2}) for name in ("g1", "g2", "g3")]
    ssn = session(*groups, a_quota(cpu=6, used={"cpu": 1}))

    enqueued(ssn, "g1")
    assert answer(ssn, "g2") == "PERMIT"
    enqueued(ssn, "g2")
    assert answer(ssn, "g3").startswith("resource quota insufficient, requested: cpu=2, used: cpu=1, limited: cpu=6")


def test_quotas_of_other_namespaces_do_not_matter() -> None:
    groups = (a_group("g1", min_resources={"cpu": 2}), a_group("g2", namespace="other", min_resources={"cpu": 2}))
    ssn = session(*groups, a_quota(namespace="other", cpu=2))

    enqueued(ssn, "g1")
    assert answer(ssn, "g2") == "PERMIT"


def test_of_several_quotas_that_refuse_the_first_by_name_is_named() -> None:
    quotas = (a_quota("b", cpu=1), a_quota("a", cpu=1), a_quota("0", cpu=5))

    assert answer(session(a_group(min_resources={"cpu": 2}), *quotas)).endswith("(ResourceQuota default/a)")


def test_an_enqueued_job_reserves_what_its_pods_do_not_request_yet() -> None:
    group = a_group("before", min_resources={"cpu": 4, "requests.cpu": 4, "count/pods": 2}, phase="Inqueue")
    pod = a_pod("before-0", group="before", cpu=1)  # used counts it
    new = a_group("new", min_resources={"cpu": 1, "requests.cpu": 2, "count/pods": 1})
    quota = a_quota(
        **{"cpu": 5, "requests.cpu": 6, "count/pods": 2}, used={"cpu": 1, "requests.cpu": 1, "count/pods": 1}
    )

    assert answer(session(group, pod, new, quota), "new").startswith(
        "resource quota insufficient, requested: count/pods=1, used: count/pods=1, limited: count/pods=2"
    )


def test_without_quotas_every_job_is_enqueued() -> None:
    assert answer(session(a_group(min_resources={"cpu": 99}))) == Vote.PERMIT.name


def test_a_refused_job_says_why_and_is_enqueued_once_the_quota_is_raised() -> None:
    groups = [a_group(name, min_resources={"cpu": 3}) for name in ("a", "b")]
    plugins = ("gang", "resourcequota", "predicates")

    result = Scenario(*groups, a_node(cpu=8), a_quota(cpu=4), plugins=plugins).run()
    raised = Scenario(*groups, a_node(cpu=8), a_quota(cpu=6), plugins=plugins).run()

    assert result.phases == {"a": "Inqueue", "b": "Pending"}
    assert [event.message for event in result.events if event.name == "b"] == [
        "resource quota insufficient, requested: cpu=3, used: cpu=0, limited: cpu=4 (ResourceQuota default/quota)"
    ]
    assert set(raised.phases.values()) == {"Inqueue"}
