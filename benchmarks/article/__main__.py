"""Run all experiments, or only some: `python -m benchmarks.article e1 e4`."""

import argparse
import importlib
from pathlib import Path

NAMES = sorted(file.stem for file in Path(__file__).parent.glob("[ep][0-9].py"))


def main() -> None:
    """Run the chosen experiments and show their reports."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.article", description=__doc__)
    parser.add_argument(
        "names", nargs="*", type=str.lower, choices=[*NAMES, []], metavar="NAME", help=f"of: {', '.join(NAMES)}"
    )
    for name in parser.parse_args().names or NAMES:
        importlib.import_module(f"benchmarks.article.{name}").run().show()


if __name__ == "__main__":
    main()
