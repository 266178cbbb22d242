"""The seeds that have shown defects, each with its plan after shrinking, in `noted/NN.json`.

A plan is kept beside its seed because a seed stands for another plan once there are more kinds of faults.
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "noted"


class Noted(NamedTuple):
    """A seed that has shown a defect."""

    defect: str
    size: str
    seed: int
    invariant: str
    text: str
    faults: list[str]
    """Those without which the seed does not show it."""
    plan: dict[str, Any]


def keep(noted: Noted) -> None:
    """Write it down."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{noted.defect}.json").write_text(json.dumps(noted._asdict(), indent=1) + "\n")


def all_of_them() -> list[Noted]:
    """Return what is written down, by defect."""
    return [Noted(**json.loads(file.read_text())) for file in sorted(FOLDER.glob("*.json"))]
