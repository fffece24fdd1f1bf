"""Applies transforms to a GraphDef, in order."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from opdock import errors
from opdock.io import protos
from opdock.transforms.calls import Call, parse_calls
from opdock.transforms.editor import check_edges
from opdock.transforms.options import Option, read_options
from opdock.transforms.registry import Context, Transform, find_transform

__all__ = ["TransformGraph", "transform_graph"]

_log = logging.getLogger("tensorflow")
_IGNORE = {"ignore_errors": Option("ignore_errors", bool, False, False)}


def transform_graph(
    graph_def: Any, inputs: Iterable[str], outputs: Iterable[str], transforms: str
) -> Any:
    """Applies transforms.

    All transforms take the option `ignore_errors`: then one that fails leaves the graph as it is.

    Args:
        graph_def: a `GraphDef`; it is not changed.
        inputs: names of nodes, or tensors, that will be fed.
        outputs: names of nodes, or tensors, whose results are wanted.
        transforms: names with options: "fold_constants(ignore_errors=true) quantize_weights".

    Returns:
        A new `GraphDef`, with the function library of the given one.

    Raises:
        InvalidArgumentError: a transform or an option is unknown, malformed or missing, or the
            graph is not what a transform asks for.
        ResourceExhaustedError: a constant does not fit into memory.
        InternalError: a transform leaves inputs of nodes that do not exist.
    """
    context = Context(tuple(inputs), tuple(outputs))
    found = [_prepared(call) for call in parse_calls(transforms)]
    check_edges(graph_def)
    result = protos.GraphDef()
    result.CopyFrom(graph_def)
    for transform, options in found:
        _log.info("Applying %s", transform.name)
        result = _applied(transform, result, context, options)
    return result


def _prepared(call: Call) -> tuple[Transform, dict[str, Any]]:
    transform = find_transform(call.name)
    return transform, read_options(call.name, _IGNORE | transform.options, call.options)


def _applied(
    transform: Transform, graph_def: Any, context: Context, options: dict[str, Any]
) -> Any:
    options = dict(options)
    tolerant = options.pop("ignore_errors", False)
    try:
        out = transform.run(graph_def, context, **options)
    except MemoryError as e:
        raise errors.ResourceExhaustedError(None, None, f"{transform.name}: {e}") from None
    except errors.OpError as e:
        if not tolerant:
            raise
        _log.error("%s: Ignoring error %s", transform.name, e.message)
        return graph_def
    if not isinstance(out, protos.GraphDef):
        raise TypeError(
            f"the transform {transform.name!r} must return a GraphDef, not {type(out).__name__}"
        )
    if graph_def.HasField("library"):
        out.library.CopyFrom(graph_def.library)
    check_edges(out)
    return out


def TransformGraph(
    input_graph_def: Any, inputs: Sequence[str], outputs: Sequence[str], transforms: Sequence[str]
) -> Any:
    """`transform_graph` under TensorFlow's name, with a list of transforms.

    Args:
        input_graph_def: a `GraphDef`.
        inputs: names of nodes that will be fed.
        outputs: names of nodes whose results are wanted.
        transforms: names of transforms, with options.

    Returns:
        A new `GraphDef`.

    Raises:
        InvalidArgumentError: see `transform_graph`.
    """
    return transform_graph(input_graph_def, inputs, outputs, " ".join(transforms))
