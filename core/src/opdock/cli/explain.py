"""`opdock explain GRAPH`: where each op of a frozen graph would run here, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from opdock import errors
from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._screen import Screen, working

_KEYS: Final = {
    "rows": "of each node: node, op, requested, device, how, kernel, plugin, why, rejections, "
    "line, fusion, members, into, missed, means, us",
    "planned_bytes": "of memory, as planned",
    "naive_bytes": "that a buffer for each result would take",
    "fusions": "how often each fusion was applied, by name",
    "moves": "ops that left a device while the graph ran (--time)",
    "segments": "what backends compiled as a whole, by name",
    "missing": "why there is no device of a type that the graph asks for",
    "devices": "what devices say of how they work just now",
}


@click.command("explain", cls=Command, example="opdock explain graph.pb --device cpu:0", keys=_KEYS)
@click.argument("graph", type=click.Path(exists=True, dir_okay=False, path_type=Path))
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
    """Say where each op of a GraphDef would run, with which kernel, and why."""
    try:
        with working(f"compiling {graph}"):
            found = explain_file(graph, fetches, feeds, device, soft=not no_soft, timed=timed)
    except (ValueError, TypeError) as e:
        raise Wrong(str(e)) from e
    except KeyError as e:
        raise Wrong(str(e.args[0])) from e
    if json_output:
        emit(found.to_dict())
        return
    screen = Screen()
    columns, rows = found.cells(rejections)
    screen.table(columns, rows, numbers=("us",))
    screen.blank()
    screen.say(found.summary(), indent=2)


def explain_file(
    path: Path, fetches: tuple[str, ...], feeds: tuple[str, ...], device: str | None, soft: bool,
    timed: bool = False,
) -> Any:  # fmt: skip
    """The `Explanation` of a graph file; see the command for the arguments.

    Raises:
        DataLossError: the file holds no GraphDef.
        KeyError, ValueError: a name is not in the graph, or a shape is malformed.
        InvalidArgumentError: an op cannot be placed.
    """
    import opdock as tf

    graph_def = tf.GraphDef()
    try:
        graph_def.ParseFromString(path.read_bytes())
    except Exception as e:
        raise errors.DataLossError(None, None, f"{path} holds no GraphDef: {e}") from e
    graph = tf.Graph()
    with graph.as_default(), graph.device(device):
        tf.import_graph_def(graph_def, name="")
    config = tf.ConfigProto(allow_soft_placement=soft)
    with tf.Session(graph=graph, config=config) as session:
        wanted = [graph.as_graph_element(f) for f in fetches] or _outputs(graph)
        given = _feeds(graph, wanted, feeds)
        return session.explain(wanted, given, _traced(session, wanted, given) if timed else None)


_WARM: Final = 2
"""Steps before the one that is timed: the first binds, and code is compiled beside it."""


def _traced(session: Any, wanted: list[Any], feeds: dict[Any, Any]) -> Any:
    """The RunMetadata of a step that is not the first."""
    import opdock as tf

    for _ in range(_WARM):
        session.run(wanted, feeds)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(wanted, feeds, options=options, run_metadata=metadata)
    return metadata


def _outputs(graph: Any) -> list[Any]:
    """The tensors that no op uses; operations where there are none."""
    ops = graph.get_operations()
    tensors = [t for op in ops for t in op.outputs if not t.consumers()]
    return tensors or ops[-1:]


def _feeds(graph: Any, wanted: list[Any], given: tuple[str, ...]) -> dict[Any, Any]:
    """Zeros for every placeholder that the fetches need."""
    import numpy as np

    shapes = {}
    for item in given:
        name, _, text = item.partition("=")
        shapes[name.removesuffix(":0")] = tuple(int(d) for d in text.split(",") if d.strip())
    feeds: dict[Any, Any] = {}
    for op in _needed(wanted):
        if op.type in ("Placeholder", "PlaceholderV2"):
            tensor = op.outputs[0]
            static = tensor.raw_shape or ()
            shape = shapes.get(op.name, tuple(1 if d is None else d for d in static))
            dtype = tensor.dtype.base_dtype
            value = (
                np.full(shape, b"", object) if dtype.name == "string" else np.zeros(shape, dtype.np)
            )
            feeds[tensor] = value
    return feeds


def _needed(wanted: list[Any]) -> list[Any]:
    stack = [getattr(w, "op", w) for w in wanted]
    seen: dict[Any, None] = {}
    while stack:
        op = stack.pop()
        if op not in seen:
            seen[op] = None
            stack.extend([t.op for t in op.inputs] + list(op.control_inputs))
    return list(seen)
