"""The simulation of today still runs over the old commit, and finds a defect there."""

import subprocess
from pathlib import Path

import pytest

from tests.simulation.old_commit import noted
from tests.simulation.old_commit.__main__ import Search, run
from tests.simulation.old_commit.trees import COMMIT, ROOT, Trees


def has_history() -> bool:
    """Say whether this checkout has that commit: a shallow clone has not."""
    asked = subprocess.run(
        ("git", "cat-file", "-e", f"{COMMIT}^{{commit}}"), cwd=ROOT, check=False, capture_output=True
    )
    return asked.returncode == 0


@pytest.mark.skipif(not has_history(), reason="a clone without history")
def test_a_noted_plan_shows_its_defect_in_the_old_commit_and_not_with_the_mend(tmp_path: Path) -> None:
    one = next(each for each in noted.all_of_them() if each.defect == "05")

    shows, line = Search(Trees(tmp_path), keep=False).verified(one)

    assert shows, line


def test_a_tree_in_which_the_simulation_does_not_start_is_no_seed_without_defects(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"does not run in .*No module named 'tests"):
        run(tmp_path, "--seeds", "short", "1", "2")
