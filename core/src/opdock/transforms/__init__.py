"""Rewrites of GraphDefs, as TensorFlow's transform_graph has them.

`transform_graph(graph_def, inputs, outputs, "fold_constants quantize_weights(minimum_size=64)")`
applies transforms by name, in order; `opdock transform-graph` does so for files. Each transform is
the file of its name in `library/`, and `opdock_graph_transforms` lets plugins bring more.
"""

from opdock.transforms.apply import TransformGraph, transform_graph
from opdock.transforms.editor import Editor
from opdock.transforms.patterns import ANY, Pattern, replace
from opdock.transforms.registry import Context, Transform, find_transform, transform_names

__all__ = [
    "ANY", "Context", "Editor", "Pattern", "Transform", "TransformGraph", "find_transform",
    "replace", "transform_graph", "transform_names",
]  # fmt: skip
