"""The picture of the demo in the README: runs the demo, takes one of its frames and writes `docs/demo.svg`.

    python -m benchmarks.picture     # or: make picture

The demo's own code draws the table, so the picture shows what a user sees in a terminal. The frame is the first one in
which the GPU gang says why it waits, a training job has all its nodes, and the other jobs say why they wait.
"""

import asyncio
import io
import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from volcano_py.cli.demo import screen
from volcano_py.local.demo import DemoOptions, Frame, run_demo
from volcano_py.local.workload import GPU_GANG
from volcano_py.runtime.logs import configure_logging

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
WIDTH: Final = 120
"""Columns of the terminal that is drawn."""

# The form that rich draws into, without its fonts of another server: GitHub does not load them into a picture.
_FORM: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <title>make demo: the live table of jobs and nodes</title>
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{
        font-size: 18px;
        font-weight: bold;
        font-family: Arial, "DejaVu Sans", sans-serif;
    }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def worth_a_picture(frame: Frame) -> bool:
    """Return whether the frame shows both cases: the GPU gang waits, a training job is placed, all others say why."""
    gang = next((job for job in frame.jobs if job.name == GPU_GANG), None)
    training = [job for job in frame.jobs if job.name != GPU_GANG]
    waiting = [job for job in training if job.placed < job.minimum]
    return (
        gang is not None
        and gang.placed == 0
        and bool(gang.why)
        and 0 < len(waiting) < len(training)
        and all(job.why for job in waiting)
    )


def drawn(frame: Frame) -> str:
    """Return the frame as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(screen(frame, WIDTH))
    svg = console.export_svg(title="make demo", unique_id="demo", code_format=_FORM)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


async def take() -> Frame | None:
    """Run the demo and return the frame, None if there was none that shows both cases."""
    found: list[Frame] = []

    def look(frame: Frame) -> None:
        if not found and worth_a_picture(frame):
            found.append(frame)

    await run_demo(DemoOptions(), look)
    return found[0] if found else None


def main() -> int:
    """Write the picture and return the exit code."""
    configure_logging("warning")
    frame = asyncio.run(take())
    if frame is None:
        print("the demo showed no moment with both cases; the picture stays as it is", file=sys.stderr)
        return 1
    PICTURE.write_text(drawn(frame))
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
