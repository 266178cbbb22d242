"""Plots a run: the cost of decisions, the rate of binds, a steady load, and the used share of each limit.

python -m benchmarks.plot FILE    draws a stored result; without a file, the newest
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.limits import Line
from benchmarks.steady import panels as steady

RESULTS = Path(__file__).parent / "results"
OUT = Path(__file__).parent / "out"
_IN_A_ROW = 3
_BINDER, _OURS, _MISSED = "#9aa5b1", "#2a6fbb", "#c0392b"


def draw(record: dict[str, Any], path: Path) -> Path:
    """Draw those of the panels for which a record has numbers, three in a row.

    Raises ValueError if there are none.
    """
    mpl.use("Agg")  # no screen is needed
    from matplotlib import pyplot

    panels = [panel for name, drawn in _PANELS.items() if record.get(name) for panel in drawn]
    if not panels:
        raise ValueError(f"nothing of this record is drawn: only {', '.join(_PANELS)} are")
    columns = min(len(panels), _IN_A_ROW)
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5.6 * columns, 4.2 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for panel, axis in zip(panels, axes.flat, strict=False):
        panel(record, axis)
        axis.grid(alpha=0.3)
        axis.set_axisbelow(True)
    machine = record["machine"]
    figure.suptitle(f"{record['when'][:10]}, commit {machine['commit']}, {machine['cores']} cores", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _decisions(record: dict[str, Any], axis: Any) -> None:
    rows = record["decision"]
    sizes = sorted({row["nodes"] for row in rows})
    for k in sorted({row["k"] for row in rows}):
        costs = {row["nodes"]: row["cpu_us_per_pod"] for row in rows if row["k"] == k}
        label = "one by one" if k == 1 else f"gangs of {k}"
        axis.plot(list(costs), list(costs.values()), marker="o", label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    ticks = [1, 3, 10, 30, 100, 300]
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.set_ylim(1, 400)
    axis.set_xlabel("nodes, all considered")
    axis.set_ylabel("CPU microseconds per placed pod")
    axis.set_title("A decision", fontsize=11)
    axis.legend(fontsize=8)


def _binding(record: dict[str, Any], axis: Any) -> None:
    rows = [row for row in record["binding"] if row["server"] == "real"]
    labels = [f"{row['gangs']} x {row['k']:,}\n{row['nodes']:,} nodes" for row in rows]
    for place, (name, colour, label) in enumerate(
        (("bare", _BINDER, "bare binder"), ("scheduler", _OURS, "scheduler"))
    ):
        rates = [row[name]["binds_per_s"] for row in rows]
        axis.bar([i + 0.4 * place for i in range(len(rows))], rates, 0.38, color=colour, label=label)
    for i, row in enumerate(rows):
        axis.annotate(
            f"{row['bind_rate_ratio']:.2f}", (i + 0.4, row["scheduler"]["binds_per_s"]), ha="center", va="bottom"
        )
    axis.set_xticks([i + 0.2 for i in range(len(rows))], labels, fontsize=8)
    axis.set_ylabel("pods bound per second")
    axis.set_ylim(top=axis.get_ylim()[1] * 1.2)  # room for the legend
    axis.set_title("Bound on kube-apiserver", fontsize=11)
    axis.legend(fontsize=8)


def _limits(record: dict[str, Any], axis: Any) -> None:
    lines = [Line(one["what"], one["value"], one["limit"], one["at_least"]) for one in record["limits"]]
    for i, line in enumerate(reversed(lines)):
        shown = min(line.used, 2.0)
        axis.barh(i, shown, color=_OURS if line.met else _MISSED)
        text = f"{line.value:g} of {line.limit:g}"
        axis.annotate(text, (max(shown, 1.0), i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_yticks(range(len(lines)), [line.what for line in reversed(lines)], fontsize=7)
    axis.set_xlim(0, 2.4)
    axis.set_xlabel("share of the limit (1 just meets it)")
    axis.set_title("Limits", fontsize=11)


_PANELS: dict[str, tuple[Callable[[dict[str, Any], Any], None], ...]] = {
    "decision": (_decisions,),
    "binding": (_binding,),
    "steady": steady.PANELS,
    "limits": (_limits,),
}


def main(arguments: Iterable[str] = sys.argv[1:]) -> int:
    """Draw one result."""
    named = [Path(argument) for argument in arguments]
    path = named[0] if named else max(RESULTS.glob("*.json"))
    print(draw(json.loads(path.read_text()), OUT / f"{path.stem}.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
