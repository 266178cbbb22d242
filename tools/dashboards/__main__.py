"""Writes the dashboards, or draws them from the data of a Prometheus.

python -m tools.dashboards write
python -m tools.dashboards draw http://localhost:9090 --minutes 60 --folder pictures
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.dashboards import prometheus
from tools.dashboards.description import read_all
from tools.dashboards.draw import Window, draw
from tools.dashboards.grafana import text_of

WRITTEN: Final = Path(__file__).resolve().parents[2] / "manifests" / "dashboards"


def write(folder: Path) -> None:
    """Write a file for each dashboard, and remove those that have no description any more."""
    wanted = {f"{dashboard.name}.json": text_of(dashboard) for dashboard in read_all()}
    for file in folder.glob("*.json"):
        if file.name not in wanted:
            file.unlink()
            print(f"removed {file}")
    for name, text in wanted.items():
        (folder / name).write_text(text)
        print(f"wrote {folder / name}")


def draw_all(url: str, minutes: float, scrape_s: float, folder: Path) -> None:
    """Draw every dashboard over the last minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.time()
    window = Window(end - minutes * 60, end, scrape_s)
    for dashboard in read_all():
        file = folder / f"{dashboard.name}.png"
        draw(dashboard, prometheus.at(url), window, file)
        print(f"drew {file}")


def main(arguments: Sequence[str]) -> int:
    """Carry out a command."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboards", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write the files that Grafana imports")
    writing.add_argument("--folder", type=Path, default=WRITTEN)
    drawing = commands.add_parser("draw", help="draw all dashboards as PNG pictures")
    drawing.add_argument("url", help="address of the Prometheus, such as http://localhost:9090")
    drawing.add_argument("--minutes", type=float, default=60.0, help="how far back the pictures go (60)")
    drawing.add_argument("--scrape-interval", type=float, default=15.0, help="seconds between two scrapes (15)")
    drawing.add_argument("--folder", type=Path, default=Path("pictures"))
    given = parser.parse_args(arguments)
    if given.command == "write":
        write(given.folder)
    else:
        draw_all(given.url.rstrip("/"), given.minutes, given.scrape_interval, given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
