"""`opdock explain GRAPH`: where each op of a frozen graph would run here, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._graphs import Wish, explain_file
from opdock.cli._screen import Screen, working

_KEYS: Final = {
    "rows": "of each node: node, op, requested, device, how, kernel, plugin, why, rejections, "
    "line, fusion, members, into, missed, means, us, inputs, control, outputs, within (the loop or "
    "branch, and which of its functions)",
    "planned_bytes": "of memory, as planned",
    "naive_bytes": "that a buffer for each result would take",
    "buffers": "how many buffers are kept",
    "fusions": "how often each fusion was applied, by name",
    "moves": "ops that left a device while the graph ran (--time)",
    "segments": "what backends compiled as a whole, by name",
    "missing": "why there is no device of a type that the graph asks for",
    "devices": "what devices say of how they work just now",
    "crossings": "what tasks of a cluster send each other",
}


@click.command("explain", cls=Command, example="opdock explain graph.pb --device cpu:0", keys=_KEYS)
@click.argument("graph", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--fetch", "fetches", multiple=True, help="Tensor or op to run (default: the outputs)."
)
@click.option(
    "--feed",
    "feeds",
    multiple=True,
    metavar="NAME=2,3",
    help="Shape of a placeholder (default: 1s).",
)
@click.option("--device", help="Place everything that names no device here.")
@click.option("--no-soft", is_flag=True, help="Do not move ops off the device that they name.")
@click.option("--rejections", is_flag=True, help="Show why each other kernel lost.")
@click.option("--time", "timed", is_flag=True, help="Run it, and show what each node took.")
@json_option
def command(
    graph: Path,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    device: str | None,
    no_soft: bool,
    rejections: bool,
    timed: bool,
    json_output: bool,
) -> None:
    """Say where each op of a GraphDef or SavedModel would run, with which kernel, and why."""
    try:
        with working(f"compiling {graph}"):
            found = explain_file(graph, Wish(fetches, feeds, device, not no_soft, timed))
    except (ValueError, KeyError, TypeError, OSError, RuntimeError) as e:
        raise Wrong(str(e.args[0] if isinstance(e, KeyError) else e)) from e
    if json_output:
        emit(found.to_dict())
        return
    screen = Screen()
    columns, rows = found.cells(rejections)
    screen.table(columns, rows, numbers=("us",))
    screen.blank()
    screen.say(found.summary(), indent=2)
