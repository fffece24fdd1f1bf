r"""Makes a frozen graph smaller and faster for inference, as TF's tool does.

    python -m opdock.tools.optimize_for_inference_lib --input frozen.pb --output small.pb \
        --input_names x --output_names y

What only training needs goes, batch normalization goes into the weights of the convolution before
it, and resizes and mirrored margins go into the convolution after them.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.api.graph_util import remove_training_nodes
from opdock.io import protos
from opdock.io.tensor_proto import make_ndarray, make_tensor_proto
from opdock.tools.protos_in_files import read_message, write_message
from opdock.tools.strip_unused_lib import strip_unused

__all__ = [
    "ensure_graph_is_valid", "fold_batch_norms", "fuse_resize_and_conv", "main", "node_from_map",
    "node_name_from_input", "optimize_for_inference", "values_from_const",
]  # fmt: skip

_log = logging.getLogger("tensorflow")


class _Norm(NamedTuple):
    """Where the parts of a batch normalization are among its inputs and attributes."""

    gamma: int
    beta: int
    mean: int
    variance: int
    epsilon: str


_NORMS: Final = {
    "BatchNormWithGlobalNormalization": _Norm(4, 3, 1, 2, "variance_epsilon"),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _Norm(1, 2, 3, 4, "epsilon")
    ),
}

_IMAGES: Final = ("MirrorPad", "ResizeBilinear")


def optimize_for_inference(
    input_graph_def: Any, input_node_names: Sequence[str], output_node_names: Sequence[str],
    placeholder_type_enum: Any, toco_compatible: bool = False,
) -> Any:  # fmt: skip
    """A graph that computes the same from the same inputs, with fewer nodes.

    Args:
        input_graph_def: a frozen `GraphDef`.
        input_node_names: nodes that will be fed; they become placeholders.
        output_node_names: nodes whose results are wanted.
        placeholder_type_enum: the type of the placeholders, or a list of types.
        toco_compatible: leave resizes and margins as they are, since converters may not know the
            ops that do them with a convolution.

    Raises:
        ValueError: names repeat, or an input of a node does not exist.
        KeyError: an input is not in the graph.
    """
    ensure_graph_is_valid(input_graph_def)
    graph = strip_unused(
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum
    )
    graph = fold_batch_norms(remove_training_nodes(graph, output_node_names))
    if not toco_compatible:
        graph = fuse_resize_and_conv(graph, output_node_names)
    ensure_graph_is_valid(graph)
    return graph


def ensure_graph_is_valid(graph_def: Any) -> None:
    """Checks that names are unique and that inputs exist; ValueError if not."""
    known = _by_name(graph_def)
    for node in graph_def.node:
        for text in node.input:
            if node_name_from_input(text) not in known:
                raise ValueError(f"Input for {node.name} not found: {text}")


def node_name_from_input(node_name: str) -> str:
    """The node of an input such as "x", "x:1" or "^x"."""
    name, _, index = node_name.removeprefix("^").rpartition(":")
    return name if name and index.isdigit() else node_name.removeprefix("^")


def node_from_map(node_map: dict[str, Any], name: str) -> Any:
    """The node of an input; ValueError if there is none."""
    found = node_map.get(node_name_from_input(name))
    if found is None:
        raise ValueError(f"No node named '{name}' found in map.")
    return found


def values_from_const(node_def: Any) -> np.ndarray[Any, Any]:
    """The value of a constant; ValueError for a node of another op."""
    if node_def.op != "Const":
        raise ValueError(
            f"Node named '{node_def.name}' should be a Const op for values_from_const."
        )
    value: np.ndarray[Any, Any] = make_ndarray(node_def.attr["value"].tensor)
    return value


# ---------------------------------------------------------------- batch normalization
def fold_batch_norms(input_graph_def: Any) -> Any:
    """Puts batch normalizations into the constant weights of the convolutions before them.

    Those that are left as they are, since something else uses the convolution or its parameters
    are no constants, are logged.

    Args:
        input_graph_def: a frozen `GraphDef`.

    Returns:
        A `GraphDef` with as many results.

    Raises:
        ValueError: names repeat, or an input of a normalization does not exist.
    """
    folder = _Folder(input_graph_def)
    for node in input_graph_def.node:
        if node.op in _NORMS:
            why = folder.fold(node)
            if why:
                _log.warning("Batch normalization '%s' is not folded: %s", node.name, why)
    return folder.result()


class _Folder:
    def __init__(self, graph_def: Any) -> None:
        self.graph_def = graph_def
        self.nodes = _by_name(graph_def)
        self.uses: dict[str, int] = {}
        for node in graph_def.node:
            for text in node.input:
                name = node_name_from_input(text)
                self.uses[name] = self.uses.get(name, 0) + 1
        self.gone: set[str] = set()
        self.made: list[Any] = []

    def result(self) -> Any:
        out = protos.GraphDef()
        out.CopyFrom(self.graph_def)
        del out.node[:]
        out.node.extend(n for n in self.graph_def.node if n.name not in self.gone)
        out.node.extend(self.made)
        return out

    def fold(self, norm: Any) -> str:
        """Folds one normalization, or says why not."""
        where = _NORMS[norm.op]
        conv = node_from_map(self.nodes, norm.input[0])
        if conv.op not in ("Conv2D", "DepthwiseConv2dNative"):
            return f"its input '{conv.name}' is a {conv.op}"
        if self.uses[conv.name] > 1:
            return f"'{conv.name}' has other uses"
        if norm.op != "BatchNormWithGlobalNormalization" and norm.attr["is_training"].b:
            return "it normalizes by the batch"
        kernel = node_from_map(self.nodes, conv.input[1])
        parts = [node_from_map(self.nodes, norm.input[i]) for i in where[:4]]
        for part in (kernel, *parts):
            if part.op != "Const":
                return f"'{part.name}' is a {part.op} and no Const; is the graph frozen?"
        weights = values_from_const(kernel)
        depthwise = conv.op == "DepthwiseConv2dNative"
        channels = weights.shape[2] * weights.shape[3] if depthwise else weights.shape[3]
        gamma, beta, mean, variance = (values_from_const(part) for part in parts)
        for part, value in zip(parts, (gamma, beta, mean, variance), strict=True):
            if value.shape != (channels,):
                return f"'{part.name}' has the shape {value.shape}, not ({channels},)"
        scale = 1 / np.sqrt(variance.astype(np.float64) + norm.attr[where.epsilon].f)
        if norm.op != "BatchNormWithGlobalNormalization" or (
            norm.attr["scale_after_normalization"].b
        ):
            scale = scale * gamma
        by_output = scale.reshape(weights.shape[2:]) if depthwise else scale
        self._replace(norm, conv, kernel, weights * by_output, beta - mean * scale)
        return ""

    def _replace(self, norm: Any, conv: Any, kernel: Any, weights: Any, offset: Any) -> None:
        dtype = values_from_const(kernel).dtype
        name = f"{conv.name}/weights_of_{norm.name}"
        folded = _constant_node(name, self.nodes, weights.astype(dtype))
        added = _constant_node(f"{conv.name}_bn_offset", self.nodes, offset.astype(dtype))
        moved = protos.NodeDef()
        moved.CopyFrom(conv)
        moved.input[1] = folded.name
        bias = protos.NodeDef(op="BiasAdd", name=norm.name, input=[conv.name, added.name])
        bias.input.extend(text for text in norm.input if text.startswith("^"))
        bias.attr["T"].CopyFrom(conv.attr["T"])
        if "data_format" in conv.attr:
            bias.attr["data_format"].CopyFrom(conv.attr["data_format"])
        self.gone |= {norm.name, conv.name}
        self.made += [folded, added, moved, bias]
        for text in (conv.input[1], *norm.input[1:]):
            name = node_name_from_input(text)
            self.uses[name] -= 1
            if not self.uses[name]:
                self.gone.add(name)


# ---------------------------------------------------------------- resizes and margins
def fuse_resize_and_conv(input_graph_def: Any, output_node_names: Sequence[str]) -> Any:
    """Makes one node of a convolution and of the bilinear resize or mirrored margins before it.

    What else uses the images between them still finds them.

    Args:
        input_graph_def: a `GraphDef`.
        output_node_names: nodes whose results are wanted.

    Returns:
        A `GraphDef` with as many results.

    Raises:
        ValueError: names repeat, or an input of a convolution does not exist.
    """
    nodes = _by_name(input_graph_def)
    made = [
        new
        for conv in input_graph_def.node
        if conv.op == "Conv2D" and _is_plain(conv)
        for new in _with_images_before(conv, nodes)
    ]
    replaced = {node.name for node in made}
    out = protos.GraphDef()
    out.CopyFrom(input_graph_def)
    del out.node[:]
    out.node.extend([n for n in input_graph_def.node if n.name not in replaced] + made)
    return _without_unused_images(out, input_graph_def, set(output_node_names))


def _is_plain(conv: Any) -> bool:
    """Whether a convolution has no attribute but those of the ops with images before it."""
    layout, rates = conv.attr["data_format"].s, conv.attr["dilations"].list.i
    return layout in (b"", b"NHWC") and set(rates) <= {1} and conv.attr["padding"].s != b"EXPLICIT"


def _with_images_before(conv: Any, nodes: dict[str, Any]) -> list[Any]:
    """The nodes that take the place of a convolution; none if there is nothing before it."""
    before = node_from_map(nodes, conv.input[0])
    pad = before if before.op == "MirrorPad" else None
    resize = node_from_map(nodes, pad.input[0]) if pad is not None else before
    # The op has no half-pixel centres.
    if resize.op != "ResizeBilinear" or resize.attr["half_pixel_centers"].b:
        resize = None
    if pad is None and resize is None:
        return []
    made = protos.NodeDef(name=conv.name, op="FusedPadConv2D")
    for name in ("T", "strides", "padding"):
        made.attr[name].CopyFrom(conv.attr[name])
    extra = []
    if pad is None:
        nothing = _constant_node(f"{conv.name}_dummy_paddings", nodes, np.zeros((4, 2), np.int32))
        extra, images, margins = [nothing], conv.input[0], nothing.name
        made.attr["mode"].s = b"REFLECT"
    else:
        images, margins = pad.input[:2]
        made.attr["mode"].CopyFrom(pad.attr["mode"])
    if resize is None:
        made.input.extend([images, margins, *conv.input[1:]])
    else:
        made.op = "FusedResizeAndPadConv2D"
        made.attr["resize_align_corners"].CopyFrom(resize.attr["align_corners"])
        made.input.extend([*resize.input[:2], margins, *conv.input[1:]])
    return [*extra, made]


def _without_unused_images(graph_def: Any, before: Any, wanted: set[str]) -> Any:
    """The graph without the resizes and margins that had uses before and have none now."""
    while True:
        lost = _used(before) - _used(graph_def) - wanted
        gone = [n for n in graph_def.node if n.name in lost and n.op in _IMAGES]
        if not gone:
            return graph_def
        for node in gone:
            graph_def.node.remove(node)


def _used(graph_def: Any) -> set[str]:
    return {node_name_from_input(text) for node in graph_def.node for text in node.input}


def _constant_node(name: str, nodes: dict[str, Any], value: np.ndarray[Any, Any]) -> Any:
    """A constant of a name that no node has."""
    while name in nodes:
        name += "_"
    node = protos.NodeDef(op="Const", name=name)
    node.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
    node.attr["dtype"].type = node.attr["value"].tensor.dtype
    nodes[name] = node
    return node


def _by_name(graph_def: Any) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for node in graph_def.node:
        if node.name in known:
            raise ValueError(f"Duplicate node names detected for {node.name}")
        known[node.name] = node
    return known


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit status."""
    parser = argparse.ArgumentParser(prog="optimize_for_inference", description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--input_names", required=True, help="separated by commas")
    parser.add_argument("--output_names", required=True, help="separated by commas")
    parser.add_argument("--frozen_graph", action=argparse.BooleanOptionalAction, default=True,
                        help="whether the input is binary")  # fmt: skip
    parser.add_argument("--placeholder_type_enum", default="1", help="separated by commas")
    args = parser.parse_args(argv)
    graph = read_message(args.input, protos.GraphDef(), args.frozen_graph, "Input graph")
    kinds = [int(kind) for kind in args.placeholder_type_enum.split(",")]
    out = optimize_for_inference(
        graph, args.input_names.split(","), args.output_names.split(","),
        kinds if len(kinds) > 1 else kinds[0],
    )  # fmt: skip
    write_message(args.output, out, args.frozen_graph)
    return 0


if __name__ == "__main__":
    sys.exit(main())
