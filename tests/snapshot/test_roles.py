"""Roles as codes, and which jobs have a role below its minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.snapshot.roles import RoleTable


def test_a_code_that_nobody_uses_is_given_away_again() -> None:
    table = RoleTable()
    worker, ps = table.acquire("worker"), table.acquire("ps")
    table.acquire("worker")
    table.release(ps)
    table.release(worker)

    assert (table.acquire("worker"), table.acquire("chief")) == (worker, ps)
    assert table.names() == ("worker", "chief")


def test_a_thousand_roles_that_come_and_go_leave_nothing() -> None:
    table = RoleTable()
    for number in range(1000):
        table.set_minimums(0, {f"role-{number}": 1})
        table.release(table.acquire(f"other-{number}"))
    table.set_minimums(0, {})

    assert len(table) == 0
    assert len(table.names()) <= 3
    assert not len(table.minimums().jobs)


def test_minimums_that_do_not_change_are_not_made_again() -> None:
    table = RoleTable()
    table.set_minimums(3, {"ps": 1, "worker": 4})
    before = table.minimums()
    table.set_minimums(3, {"worker": 4, "ps": 1})

    assert table.minimums() is before
    table.set_minimums(3, {"worker": 5, "ps": 1})
    assert sorted(table.minimums().tasks.tolist()) == [1, 5]


MINIMUMS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3)


@pytest.mark.parametrize("n_jobs", [1, 4])
@given(data=st.data())
def test_the_jobs_that_are_short_are_those_with_a_role_below_its_minimum(n_jobs: int, data: st.DataObject) -> None:
    minimums = data.draw(st.lists(MINIMUMS, min_size=n_jobs, max_size=n_jobs))
    tasks = data.draw(st.lists(st.tuples(st.integers(0, n_jobs - 1), st.sampled_from("abcd")), max_size=12))
    table = RoleTable()
    for job, roles in enumerate(minimums):
        table.set_minimums(job, roles)
    jobs = np.array([job for job, _ in tasks], dtype=np.int32)
    roles = np.array([table.acquire(role) for _, role in tasks], dtype=np.int32)

    expected = [any(tasks.count((job, role)) < least for role, least in minimums[job].items()) for job in range(n_jobs)]
    assert table.minimums().unmet(jobs, roles, n_jobs).tolist() == expected
