from typing import Any, Literal

import pytest

from tests.digest import MOST_TESTS, digest

HERE = "tests/test_digest.py"


def a_report(longrepr: Any, name: str = "test_it", when: Literal["setup", "call", "teardown"] = "call") -> Any:
    nodeid = f"{HERE}::{name}"
    return pytest.TestReport(nodeid, (HERE, 1, name), {}, "failed", longrepr, when, duration=1.25)


def test_the_digest_names_the_test_its_line_and_a_shortened_message() -> None:
    helper = compile("raise AssertionError('a ' * 5000)", "helper.py", "exec")
    with pytest.raises(AssertionError) as caught:
        exec(helper)

    first, second = digest([a_report(caught.getrepr())])

    line = test_the_digest_names_the_test_its_line_and_a_shortened_message.__code__.co_firstlineno + 3
    assert first == f"{HERE}::test_it, after 1.2 s, line {line}: exec(helper)"
    assert second.startswith("    AssertionError: a a a a")
    assert len(second) < 300


def test_a_failure_in_setup_or_teardown_says_so_and_a_bare_text_is_a_reason() -> None:
    assert list(digest([a_report("worker 'gw0' crashed\n", when="teardown")])) == [
        f"{HERE}::test_it (teardown), after 1.2 s",
        "    worker 'gw0' crashed",
    ]


def test_many_failures_are_counted() -> None:
    lines = list(digest([a_report("no", f"test_{number}") for number in range(MOST_TESTS + 7)]))

    assert len(lines) == 2 * MOST_TESTS + 1
    assert lines[-1] == "... and 7 more"
