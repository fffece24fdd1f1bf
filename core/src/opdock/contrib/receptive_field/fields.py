"""Receptive fields, from the output of a network back to its image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import opdock as tf
from opdock.contrib.receptive_field.graph_compute_order import get_compute_order
from opdock.contrib.receptive_field.parse_layer_parameters import get_layer_params

__all__ = ["ReceptiveField", "compute_receptive_field_from_graph_def"]


class ReceptiveField:
    """The windows of an image that the features of a network see.

    Args:
        size: sizes of a window, in x and y.
        stride: steps from one to the next.
        padding: how far the first begins before the image.
    """

    def __init__(self, size: Any, stride: Any, padding: Any) -> None:
        self.size = np.asarray(size)
        self.stride = np.asarray(stride)
        self.padding = np.asarray(padding)

    def compute_input_center_coordinates(self, y: Any, axis: Sequence[int] | None = None) -> Any:
        """The centers, in the image, of what features see.

        Args:
            y: places of features [..., dimensions].
            axis: which dimensions they are; all if None.

        Raises:
            ValueError: there are more or fewer dimensions than in `axis`.
        """
        axes, places = self._at(y, axis, "feature coordinates `y`")
        return -self.padding[axes] + places * self.stride[axes] + (self.size[axes] - 1) / 2

    def compute_feature_coordinates(self, x: Any, axis: Sequence[int] | None = None) -> Any:
        """The places of the features that see windows with such centers.

        Args:
            x: centers [..., dimensions].
            axis: which dimensions they are; all if None.

        Raises:
            ValueError: there are more or fewer dimensions than in `axis`.
        """
        axes, places = self._at(x, axis, "input center coordinates `x`")
        return (places + self.padding[axes] + (1 - self.size[axes]) / 2) / self.stride[axes]

    def __iter__(self) -> Iterator[Any]:
        """Sizes, strides and paddings, each in x and y."""
        return iter(np.concatenate([self.size, self.stride, self.padding]))

    def _at(self, given: Any, axis: Sequence[int] | None, what: str) -> tuple[list[int], Any]:
        axes = list(range(self.size.size) if axis is None else axis)
        places = np.asarray(given)
        if places.shape[-1] != len(axes):
            raise ValueError(
                f"Dimensionality of the {what} ({places.shape[-1]}) does not match "
                f"dimensionality of `axis` ({len(axes)})"
            )
        return axes, places


class _Field(NamedTuple):
    """What the output sees of a node, along one dimension; the padding may not be known."""

    size: int
    stride: int
    padding: int | None

    def before(self, size: int, stride: int, padding: int | None) -> _Field:
        """What it sees of what goes into a node with such windows."""
        start = None
        if self.padding is not None and padding is not None:
            start = stride * self.padding + padding
        return _Field(stride * self.size + size - stride, stride * self.stride, start)

    def check(self, other: _Field, direction: str) -> None:
        """Raises ValueError if two ways lead to windows that do not lie upon each other."""
        if self.padding is None or other.padding is None:
            return
        problem = "Graph is not aligned since {} from different paths is different in {} direction"
        if self.stride != other.stride:
            raise ValueError(problem.format("effective stride", direction))
        if (self.size - 1) / 2 - self.padding != (other.size - 1) / 2 - other.padding:
            raise ValueError(problem.format("center shift", direction))


def compute_receptive_field_from_graph_def(
    graph_def: Any, input_node: Any, output_node: Any, stop_propagation: Any = None,
    input_resolution: Any = None,
) -> ReceptiveField:  # fmt: skip
    """Which windows of an image the features of a network see.

    Args:
        graph_def: a graph or a GraphDef.
        input_node: the image, a tensor or a node's name.
        output_node: the features.
        stop_propagation: beginnings of names of nodes that are left out, with what is before them.
        input_resolution: height and width of the image, where paddings depend on them.

    Returns:
        A `ReceptiveField`, whose paddings are None if they depend on a size that is not known.

    Raises:
        ValueError: one of the nodes is not found, a layer is not known, or several ways lead from
            the image to the features that see other places of it.
    """
    if isinstance(graph_def, tf.Graph):
        graph_def = graph_def.as_graph_def()
    input_name, output_name = (
        node.op.name if isinstance(node, tf.Tensor) else node for node in (input_node, output_node)
    )
    info, nodes = get_compute_order(graph_def, input_name, input_resolution)
    if output_name not in nodes:
        raise ValueError("Output node was not found")
    # In x and y.
    fields = {output_name: (_Field(1, 1, 0), _Field(1, 1, 0))}
    for name, (_, node, size, _) in sorted(info.items(), key=lambda item: -item[1].order):
        if name == input_name:
            break
        if name not in fields:
            continue
        size_x, size_y, stride_x, stride_y, padding_x, padding_y, _, _ = get_layer_params(
            node, nodes, size
        )
        seen_x, seen_y = fields[name]
        found = (
            seen_x.before(size_x, stride_x, padding_x),
            seen_y.before(size_y, stride_y, padding_y),
        )
        for other in node.input:
            if other.startswith(("^", *(stop_propagation or ()))):
                continue
            other = other.partition(":")[0]
            known = fields.setdefault(other, found)
            for old, new, direction in zip(known, found, ("horizontal", "vertical"), strict=True):
                old.check(new, direction)
            # The way on which most is seen.
            fields[other] = (
                max(known[0], found[0], key=lambda field: field.size),
                max(known[1], found[1], key=lambda field: field.size),
            )
    if input_name not in fields:
        raise ValueError("Input node was not found")
    x, y = fields[input_name]
    return ReceptiveField((x.size, y.size), (x.stride, y.stride), (x.padding, y.padding))
