"""The lint of retired words finds them in every spelling and leaves allowed uses alone."""

from pathlib import Path

import pytest

from tests.architecture import retired_words
from tests.architecture.retired_words import Allowed, Finding, findings, findings_in


@pytest.mark.parametrize(
    ("line", "word"),
    [
        pytest.param("# a truce for every victim", "truce", id="comment"),
        pytest.param("def let_in(job): ...", "let in", id="snake-case"),
        pytest.param("class HeldRoom: ...", "held room", id="camel-case"),
        pytest.param("_MOST_BARRED = 256", "barred", id="constant"),
        pytest.param("| claimant | who asks |", "claimant", id="table-of-a-page"),
        pytest.param("**held-back** pods", "held back", id="hyphen"),
        pytest.param("Waves of evictions", "waves", id="capital-and-plural"),
    ],
)
def test_a_retired_word_is_found_in_every_spelling(line: str, word: str) -> None:
    (finding,) = findings_in("a.py", f"first line\n{line}\n")

    assert (finding.path, finding.line, finding.word) == ("a.py", 2, word)
    assert str(finding) == f"a.py:2: {word} -> {finding.instead}"


@pytest.mark.parametrize(
    "line",
    [
        "a PersistentVolumeClaim and a resource claim",
        "the plane, a controlplane, and a closer look",
        "taking back what was committed",
        "unified_evictable and UnifiedEvictable",
        "letting everybody in",
        "it complains that an echo is late",
    ],
)
def test_ordinary_words_are_not_found(line: str) -> None:
    assert list(findings_in("a.md", line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "`volcano_py_lane_backlog` | gauge | `lane`",
        'Gauge("volcano_py_lane_backlog", "Values that wait.", ["lane"])',
        'sum by (lane) (volcano_py_lane_backlog{lane="event"})',
        'case.input["claimant"]',
        "python -m benchmarks --only neighbours",
        "    neighbours,",
        "| `VictimFilter.spared` | `VictimFilter.protected` |",
        '"Evictables": "VictimCandidates", "NeighbourFilter": "InterPodFilter"',
    ],
)
def test_allowed_uses_are_not_found(line: str) -> None:
    assert list(findings_in("a.py", line)) == []


def test_an_exception_covers_only_its_own_text() -> None:
    found = findings_in("a.py", "a lane and the metric some_lane_total", [Allowed("some_lane_total", "a metric")])

    assert [finding.word for finding in found] == ["lane"]


def test_every_exception_gives_a_reason() -> None:
    assert all(exception.reason for exception in retired_words.ALLOWED)


def test_no_replacement_uses_a_retired_word() -> None:
    assert list(findings_in("the table", "\n".join(retired_words.RETIRED.values()))) == []


def test_files_of_the_searched_folders_are_read_in_order_except_the_glossary(tmp_path: Path) -> None:
    for name in ("docs/glossary.md", "docs/b.md", "docs/a/deep.yaml", "docs/a.json", "elsewhere/a.md", "README.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the loser\n")

    found = list(findings(tmp_path, ("docs", "README.md", "CHANGELOG.md")))

    assert found == [Finding(path, 1, "loser", "victim") for path in ("README.md", "docs/a/deep.yaml", "docs/b.md")]


def test_the_exit_code_says_whether_a_word_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retired_words, "findings", lambda: iter([Finding("a.py", 3, "taker", "preemptor")]))
    assert retired_words.main() == 1
    assert capsys.readouterr().out.startswith("a.py:3: taker -> preemptor\n1 uses of retired words")

    monkeypatch.setattr(retired_words, "findings", lambda: iter(()))
    assert retired_words.main() == 0
    assert capsys.readouterr().out == ""
