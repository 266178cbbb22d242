"""What a job that is being deleted waits for, and what helps."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from tests.cli.vcctl.gangs import (
    NOW,
    QUEUE_TREE,
    explained,
    member,
    vcjob,
)
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import VCJOBS


def deleted(*finalizers: str) -> Any:
    job = vcjob("Running")
    job["metadata"].update(deletionTimestamp="2026-03-01T11:58:00Z", finalizers=list(finalizers))
    return job


def leaving(name: str, *finalizers: str) -> Any:
    pod = member(name, "n1")
    pod["metadata"].update(deletionTimestamp="2026-03-01T11:58:00Z", deletionGracePeriodSeconds=30)
    return {**pod, "metadata": {**pod["metadata"], "finalizers": list(finalizers)}} if finalizers else pod


def test_a_job_that_is_deleted_in_the_foreground_waits_for_its_pods() -> None:
    pods = [leaving("fg-a-0", "x.io/hold"), leaving("fg-a-1"), member("fg-a-2", "n1"), leaving("fg-a-3")]

    found = explained(job=deleted("foregroundDeletion"), pods=pods)

    assert found.answer == (
        "it is being deleted, and waits until its pods are gone: fg-a-0 has been terminating for 2m30s, finalizers "
        "x.io/hold; fg-a-1 has been terminating for 2m30s; fg-a-2 is not being deleted yet, and 1 more"
    )
    assert found.ways_out == (
        "kubectl describe pod fg-a-0 -n a    # what keeps it?",
        "find the controller that adds the finalizer of the pod: it removes it when it has cleaned up",
    )


@pytest.mark.parametrize(
    ("finalizers", "answer", "way_out"),
    [
        ((), "it is being deleted", ""),
        (("orphan",), "it is being deleted, and waits until its pods are released from it", "kube-controller-manager"),
        (
            ("example.com/audit",),
            "it is being deleted, and waits until example.com/audit is removed from metadata.finalizers",
            "find the controller that adds the finalizer",
        ),
        (
            ("foregroundDeletion", "a.io/b", "c.io/d"),
            "it is being deleted, and waits until its pods are gone and a.io/b and c.io/d are removed from",
            "find the controller that adds the finalizer",
        ),
    ],
)
def test_a_job_that_is_deleted_says_what_it_waits_for(finalizers: tuple[str, ...], answer: str, way_out: str) -> None:
    found = explained(job=deleted(*finalizers), queues=QUEUE_TREE)

    assert found.answer.startswith(answer)
    assert way_out in " ".join(found.ways_out)


def test_a_name_that_is_taken_until_pods_are_gone_says_so() -> None:
    call = call_of("job run train -n a", Canned({VCJOBS: [deleted("foregroundDeletion")]}), io.StringIO(), NOW)

    with pytest.raises(Problem) as problem, call.about(VCJOBS, "train", namespace="a"):
        raise ApiProblem(409, "AlreadyExists", 'jobs "train" already exists')

    assert str(problem.value) == (
        'jobs "train" already exists; it is being deleted and waits until its pods are gone: '
        "try again when it is gone, or choose another name"
    )
