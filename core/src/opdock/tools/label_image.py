"""Says what a classifier sees in an image: TensorFlow's label_image."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.api import image as images
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.serial.importer import import_graph_def
from opdock.io.files import read_file
from opdock.ops.arithmetic import subtract
from opdock.ops.array import expand_dims
from opdock.ops.cast import cast
from opdock.ops.composed.division import divide
from opdock.ops.identity import placeholder
from opdock.runtime.session import Session
from opdock.tools.arguments import ToolParser, add_json, add_switch, naming
from opdock.tools.protos_in_files import read_graph

__all__ = [
    "create_parser",
    "load_graph",
    "load_labels",
    "main",
    "read_tensor_from_image_file",
    "top_labels",
]


def load_graph(model_file: str) -> Graph:
    """A graph with the nodes of a file below "import", as TF's tool has it.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it holds no GraphDef.
    """
    with Graph().as_default() as graph:
        import_graph_def(read_graph(model_file), name="import")
    return graph


def read_tensor_from_image_file(
    file_name: str, input_height: int = 299, input_width: int = 299, input_mean: float = 0,
    input_std: float = 255,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """Reads, decodes, resizes and normalizes an image.

    Args:
        file_name: a PNG, GIF or BMP by its ending; else a JPEG.
        input_height: rows of the result.
        input_width: columns of the result.
        input_mean: is subtracted.
        input_std: divides then.

    Returns:
        A float32 array [1, input_height, input_width, 3]; of a GIF the first picture.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it holds no such image.
    """
    kind = file_name.rpartition(".")[2].lower()
    with Graph().as_default() as graph:
        content = placeholder(dtypes.string, ())
        if kind == "png":
            image = images.decode_png(content, channels=3)
        elif kind == "gif":
            image = images.decode_gif(content)[0]
        elif kind == "bmp":
            image = images.decode_bmp(content, channels=3)
        else:
            image = images.decode_jpeg(content, channels=3)
        batch = expand_dims(cast(image, dtypes.float32), 0)
        resized = images.resize_bilinear(batch, [input_height, input_width])
        result = divide(subtract(resized, [float(input_mean)]), [float(input_std)])
        with Session(graph=graph) as session:
            pixels: np.ndarray[Any, Any] = session.run(result, {content: read_file(file_name)})
    return pixels


def load_labels(label_file: str) -> list[str]:
    """The lines of a file."""
    return [line.rstrip() for line in read_file(label_file).decode().splitlines()]


def top_labels(
    scores: np.ndarray[Any, Any], labels: Sequence[str], count: int = 5
) -> list[tuple[str, int, float]]:
    """The best labels, best first: each with its index and its score.

    Raises:
        InvalidArgumentError: there are fewer labels than scores.
    """
    flat = scores.reshape(-1)
    if len(labels) < flat.size:
        raise errors.InvalidArgumentError(
            None, None, f"--labels has {len(labels)} lines, but there are {flat.size} scores"
        )
    best = np.argsort(-flat, kind="stable")[:count]
    return [(labels[i], int(i), float(flat[i])) for i in best]


def main(argv: Sequence[str] | None = None, prog: str = "label_image") -> int:
    """Runs the tool; returns its exit status.

    Raises:
        NotFoundError: a file does not exist.
        InvalidArgumentError: the image, a layer or the labels do not fit.
    """
    args = create_parser(prog).parse_args(argv)
    image, graph_file, labels_file = (
        os.path.join(args.root_dir, name) for name in (args.image, args.graph, args.labels)
    )
    graph = load_graph(graph_file)
    labels = load_labels(labels_file)
    with naming("--image"):
        pixels = read_tensor_from_image_file(
            image, args.input_height, args.input_width, args.input_mean, args.input_std
        )
    layers = [_tensor(graph, option, getattr(args, option)) for option in _LAYERS]
    with naming("--input_height, --input_width"):
        _check_shape(layers[0], pixels.shape)
    with Session(graph=graph) as session:
        scores = session.run(layers[1], {layers[0]: _as_type(pixels, layers[0])})
    best = top_labels(scores, labels)
    if args.json:
        print(
            json.dumps([dict(zip(("label", "index", "score"), row, strict=True)) for row in best])
        )
    else:
        for label, index, score in best:
            print(f"{label} ({index}): {score:g}")
    seen = [index for _, index, _ in best[:1]]
    if args.self_test and seen != [SELF_TEST_INDEX]:
        told = f"the best output is {seen[0] if seen else 'none'}, not {SELF_TEST_INDEX}"
        print(f"{prog}: --self_test: {told}", file=sys.stderr)
        return 1
    return 0


_LAYERS = ("input_layer", "output_layer")
SELF_TEST_INDEX: Final = 653
"""What TensorFlow's example sees in its own picture of Grace Hopper: "military uniform"."""


def create_parser(prog: str) -> ToolParser:
    """The tool's options."""
    parser = ToolParser(prog=prog, description=__doc__)
    parser.add_argument("--image", required=True, help="the image: PNG, GIF, BMP or JPEG")
    parser.add_argument("--graph", required=True, help="file of the GraphDef")
    parser.add_argument("--labels", required=True, help="file with a label in each line")
    parser.add_argument("--input_width", type=int, default=299, help="default: 299")
    parser.add_argument("--input_height", type=int, default=299, help="default: 299")
    parser.add_argument("--input_mean", type=float, default=0.0, help="default: 0")
    parser.add_argument("--input_std", type=float, default=255.0, help="default: 255")
    parser.add_argument("--input_layer", default="input", help="default: input")
    parser.add_argument(
        "--output_layer", default="InceptionV3/Predictions/Reshape_1",
        help="default: InceptionV3/Predictions/Reshape_1",
    )  # fmt: skip
    parser.add_argument("--root_dir", default="", help="where files are whose names are relative")
    add_switch(
        parser, "--self_test", False,
        f"fail unless output {SELF_TEST_INDEX} is the best, as of TensorFlow's own picture",
    )  # fmt: skip
    add_json(parser)
    return parser


def _check_shape(layer: Tensor, shape: tuple[int, ...]) -> None:
    if not layer.get_shape().is_compatible_with(shape):
        raise errors.InvalidArgumentError(
            None, None, f"images of shape {shape} do not fit {layer.get_shape()}"
        )


def _tensor(graph: Graph, option: str, name: str) -> Tensor:
    full = f"import/{name}" if ":" in name else f"import/{name}:0"
    try:
        return graph.get_tensor_by_name(full)
    except KeyError:
        raise errors.InvalidArgumentError(
            None, None, f"--{option}: the graph has no tensor '{name}'"
        ) from None


def _as_type(pixels: np.ndarray[Any, Any], layer: Tensor) -> np.ndarray[Any, Any]:
    """Pixels for a layer of bytes, which a quantized graph may have, are those without a mean."""
    if layer.dtype.base_dtype is dtypes.quint8:
        as_bytes = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
        quantized: np.ndarray[Any, Any] = as_bytes.view(dtypes.quint8.np)
        return quantized
    return pixels.astype(layer.dtype.base_dtype.np)


if __name__ == "__main__":
    sys.exit(main())
