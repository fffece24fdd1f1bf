"""What `explain`, `view` and `bisect` read, opened in a session.

Graphs by themselves, in meta graphs and in event files; SavedModels; folders of event files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from opdock import errors
from opdock.cli._traces import newest_events
from opdock.io import protos
from opdock.runtime.inspect.cases import device_scope
from opdock.runtime.inspect.explain import Explanation

Shape: TypeAlias = "tuple[int, ...]"
_WARM: Final = 2
"""Steps before the one that is timed: the first binds, and code is compiled beside it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be explained of a file.

    Attributes:
        fetches: names of tensors or ops; none for the outputs.
        feeds: shapes of placeholders, as "name=2,3".
        device: where to place what names no device, or None.
        soft: whether ops may leave the device that they name.
        timed: whether to run it, and say what each node took.
    """

    fetches: Sequence[str] = ()
    feeds: Sequence[str] = ()
    device: str | None = None
    soft: bool = True
    timed: bool = False


def explain_file(path: Path, wish: Wish) -> Explanation:
    """The explanation of a graph, or of the first signature of a SavedModel that serves.

    Raises:
        DataLossError: the file holds no graph.
        OSError, RuntimeError: the directory holds no event file and no SavedModel that serves.
        KeyError, ValueError: a name is not in the graph, or a shape is malformed.
        InvalidArgumentError: an op cannot be placed.
    """
    with opened(path, wish) as (session, wanted):
        given = fed(wanted, wish.feeds)
        traced = _traced(session, wanted, given) if wish.timed else None
        found: Explanation = session.explain(wanted, given, traced)
    # The lines that made these nodes are this tool's, which read them.
    found.rows = [replace(row, line="") for row in found.rows]
    return found


@contextlib.contextmanager
def opened(path: Path, wish: Wish) -> Iterator[tuple[Any, list[Any]]]:
    """A session with what a path holds, and what of it is fetched.

    Raises:
        as `explain_file`.
    """
    import opdock as tf

    graph = tf.Graph()
    config = tf.ConfigProto(allow_soft_placement=wish.soft)
    with graph.as_default(), graph.device(wish.device and device_scope(wish.device)):
        saved = path.is_dir() and not newest_events(path)
        if not saved:
            tf.import_graph_def(read_graph(path), name="")
        with tf.Session(graph=graph, config=config) as session:
            outputs = _loaded(session, path) if saved else _outputs(graph)
            yield session, [graph.as_graph_element(f) for f in wish.fetches] or outputs


def read_graph(path: Path) -> Any:
    """The GraphDef that a path holds.

    Args:
        path: a GraphDef or MetaGraphDef, binary or text; an event file, of whose graphs the last
            one counts; a folder of event files, the newest; or a SavedModel that serves.

    Raises:
        DataLossError: the file holds none.
        OSError, RuntimeError: the directory holds no event file and no SavedModel that serves.
    """
    if path.is_dir():
        newest = newest_events(path)
        if newest is None:
            from opdock.saved_model.loader import SavedModelLoader
            from opdock.saved_model.tag_constants import SERVING

            return SavedModelLoader(str(path)).get_meta_graph_def_from_tags([SERVING]).graph_def
        path = newest
    from opdock.tools.protos_in_files import read_graph as read

    with contextlib.suppress(errors.DataLossError):
        graph_def = read(path)
        # Of other messages too, the wire format can be read as a graph of nodes without ops.
        if graph_def.node and all(node.op and node.name for node in graph_def.node):
            return graph_def
    found = _in_meta_graph(path) or _in_events(path)
    if found is None:
        why = f"{path} holds no GraphDef, no MetaGraphDef and no event with a graph"
        raise errors.DataLossError(None, None, why)
    return found


def _in_meta_graph(path: Path) -> Any | None:
    from opdock.train.meta_graph import read_meta_graph_file

    with contextlib.suppress(OSError):
        meta = read_meta_graph_file(path)
        if meta.graph_def.node:
            return meta.graph_def
    return None


def _in_events(path: Path) -> Any | None:
    """The last graph of an event file."""
    from opdock.io.event_files import summary_iterator
    from opdock.io.parsing import parsed

    found = None
    # A cut event file still has what was flushed; a file of another kind has nothing.
    with contextlib.suppress(errors.OpError):
        for event in summary_iterator(path):
            if event.WhichOneof("what") == "graph_def":
                found = parsed(protos.GraphDef, event.graph_def, f"a graph of {path}")
    return found


def _loaded(session: Any, path: Path) -> list[Any]:
    """Loads a SavedModel; the outputs of its signature of serving, or of the first one."""
    import opdock as tf

    meta = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], str(path))
    default = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    named = meta.signature_def
    key = default if default in named else min((k for k in named if named[k].outputs), default=None)
    if key is None:
        return _outputs(session.graph)
    graph, infos = session.graph, named[key].outputs
    return [graph.as_graph_element(infos[output].name) for output in sorted(infos)]


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


def fed(
    wanted: list[Any], given: Sequence[str], draw: Callable[[Any, Shape], Any] | None = None
) -> dict[Any, Any]:
    """Values for every placeholder that the fetches need: zeros, and empty strings.

    Args:
        wanted: what is fetched.
        given: shapes of placeholders, as "name=2,3"; what is open of the others is 1.
        draw: makes a value of a dtype and a shape, in place of those.

    Raises:
        ValueError: a shape is malformed, or of no placeholder that is needed.
    """
    shapes = {}
    for item in given:
        name, _, text = item.partition("=")
        shapes[name.removesuffix(":0")] = tuple(int(d) for d in text.split(",") if d.strip())
    feeds: dict[Any, Any] = {}
    for op in _needed(wanted):
        if op.type in ("Placeholder", "PlaceholderV2"):
            tensor = op.outputs[0]
            static = tensor.raw_shape or ()
            shape = shapes.pop(op.name, tuple(1 if d is None else d for d in static))
            feeds[tensor] = (draw or _zeros)(tensor.dtype.base_dtype, shape)
    if shapes:
        raise ValueError(f"no placeholder {', '.join(sorted(shapes))} is needed for what is run")
    return feeds


def _zeros(dtype: Any, shape: Shape) -> Any:
    import numpy as np

    return np.full(shape, b"", object) if dtype.name == "string" else np.zeros(shape, dtype.np)


def _needed(wanted: list[Any]) -> list[Any]:
    stack = [getattr(w, "op", w) for w in wanted]
    seen: dict[Any, None] = {}
    while stack:
        op = stack.pop()
        if op not in seen:
            seen[op] = None
            stack.extend([t.op for t in op.inputs] + list(op.control_inputs))
    return list(seen)
