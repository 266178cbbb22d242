"""Plans that have violated an invariant once, each in a file: `python -m tests.simulation story SEED --keep WHY`."""

from pathlib import Path
from typing import Final

import msgspec

from tests.simulation.plan import Plan

FOLDER: Final = Path(__file__).parent


class Regression(msgspec.Struct, frozen=True):
    """A plan that violated an invariant before something was mended."""

    why: str
    """What was wrong."""
    plan: Plan

    @property
    def name(self) -> str:
        """Its number: the size and the seed of its plan."""
        return f"{self.plan.size.name}-{self.plan.seed}"


def keep(plan: Plan, why: str) -> Path:
    """Write a plan down."""
    regression = Regression(why, plan)
    file = FOLDER / f"{regression.name}.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(regression), indent=1) + b"\n")
    return file


def load(file: Path) -> Regression:
    """Return what is written in a file."""
    return msgspec.json.decode(file.read_bytes(), type=Regression)


def all_of_them() -> list[Regression]:
    """Return all that are written down."""
    return [load(file) for file in sorted(FOLDER.glob("*.json"))]
