"""Figures as SVG: bars of the workloads' ratios, and the scaling curves.

The same data gives the same bytes with the same Matplotlib: no date, no random names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curves import PHASES
from report import mean, present

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = {"opdock": "#0b6e4f", "tensorflow": "#e8801a", "torch": "#c8402f", "jax": "#5b5fc7"}
MISSING = (
    "--plot needs Matplotlib, which the dependency group bench brings: pip install --group bench"
)


def drawn(data: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Writes what the data has; section -> file."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "opdock", "svg.fonttype": "none", "font.size": 9})
    device = data["about"].get("device")
    suffix = (
        f"-{device.strip('/').replace('device:', '').replace(':', '-').lower()}" if device else ""
    )
    found = {}
    for key, draw in (("workloads", workload_figure), ("curves", curve_figure)):
        if data.get(key):
            folder.mkdir(parents=True, exist_ok=True)
            found[key] = folder / f"{key}{suffix}.svg"
            draw(data[key]).savefig(found[key], metadata={"Date": None}, bbox_inches="tight")
    return found


def workload_figure(workloads: Sequence[Mapping[str, Any]]) -> Figure:
    """Each peer's time in parts of opdock's; without peers the times themselves."""
    from matplotlib.figure import Figure

    peers = [p for p in present(workloads) if any(p in w["ratios"] for w in workloads)]
    figure = Figure(figsize=(8, 0.9 + 0.34 * len(workloads)))
    axes = figure.subplots()
    names = [w["name"] for w in workloads]
    if peers:
        height = 0.8 / len(peers)
        for i, peer in enumerate(peers):
            rows = [(j, w["ratios"][peer]) for j, w in enumerate(workloads) if peer in w["ratios"]]
            axes.barh(
                [j + (i - (len(peers) - 1) / 2) * height for j, _ in rows],
                [r["median"] - 1 for _, r in rows],
                height,
                left=1.0,
                color=COLOURS[peer],
                label=f"{peer}, geometric mean {mean(workloads, peer)}",
            )
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_xlabel("time of a step in parts of opdock's (right of 1: opdock is faster)")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(peers))
    else:
        rows = [(i, w["libraries"]["opdock"].get("step")) for i, w in enumerate(workloads)]
        timed = [(i, step * 1e3) for i, step in rows if step is not None]
        axes.barh([i for i, _ in timed], [s for _, s in timed], 0.7, color=COLOURS["opdock"])
        axes.set_xlabel("ms a step, opdock")
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="x", linewidth=0.3)
    return figure


def curve_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """One panel a phase of the graph's growth, and one for the batch."""
    from matplotlib.figure import Figure

    panels: list[tuple[str, str, str, str]] = []
    if "graph" in curves:
        panels += [("graph", phase, "ops", f"{phase}, s") for phase in PHASES]
    if "batch" in curves:
        panels.append(("batch", "step", "batch", "training step, s"))
    columns = min(3, len(panels))
    figure = Figure(figsize=(3 * columns, 2.7 * -(-len(panels) // columns)), layout="constrained")
    grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (curve, key, across, up) in zip(grid.flat, panels):
        lines(axes, curves[curve], key)
        axes.set(xscale="log", yscale="log", xlabel=across, title=up)
        plain(axes.yaxis)
        axes.grid(linewidth=0.3)
    grid.flat[len(panels) - 1].legend()
    return figure


def plain(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of each power of ten, without exponents."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def lines(axes: Axes, points: Sequence[Mapping[str, Any]], key: str) -> None:
    """A line for each library."""
    for name in present(points):
        found = [(p["size"], p["libraries"].get(name, {}).get(key)) for p in points]
        kept = [(x, y) for x, y in found if y is not None]
        axes.plot(
            [x for x, _ in kept], [y for _, y in kept], "o-", color=COLOURS[name], label=name, ms=3
        )
