"""Beams in tensors: [batch, beams, ...] for the search, [batch * beams, ...] for a cell."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import range as tensor_range
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["BeamLayout", "tile_batch"]


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeats each example of a batch, all copies side by side.

    Args:
        t: a structure of tensors [batch, ...].
        multiplier: how often, the number of beams.
        name: a name for the operations.

    Returns:
        Tensors [batch * multiplier, ...].

    Raises:
        ValueError: a rank is not known.
    """
    with name_scope(name, "tile_batch", [*nest.flatten(t), multiplier]):
        return nest.map_structure(lambda part: _tiled(part, multiplier), t)


def _tiled(part: Any, times: int) -> Tensor:
    part = convert_to_tensor(part, name="t")
    if not part.shape.ndims:
        raise ValueError("t must have statically known rank")
    sizes, batch = shape(part), part.shape.as_list()[0]
    copies = tile(expand_dims(part, 1), [1, times, *[1] * (part.shape.ndims - 1)])
    out = reshape(copies, concat([[sizes[0] * times], sizes[1:]], 0))
    out.set_shape([None if batch is None else batch * times, *part.shape.as_list()[1:]])
    return out


def _static(size: Any) -> TensorShape:
    if isinstance(size, Tensor):
        known = constant_value(size)
        return TensorShape([None if known is None else int(known)])
    return TensorShape([size] if isinstance(size, int) else size)


class BeamLayout:
    """Changes between both layouts, and picks beams.

    Args:
        batch: the number of examples, a scalar tensor.
        width: the number of beams.
    """

    def __init__(self, batch: Any, width: int) -> None:
        self._batch, self._width = batch, width
        known = constant_value(batch)
        self.static_batch = None if known is None else int(known)

    def merge(self, part: Any, inner: Any) -> Tensor:
        """[batch, beams, ...] as [batch * beams, ...]; `inner` is the rest of the shape."""
        out = reshape(part, concat([[self._batch * self._width], shape(part)[2:]], 0))
        rows = None if self.static_batch is None else self.static_batch * self._width
        out.set_shape(TensorShape([rows]).concatenate(_static(inner)))
        return out

    def split(self, part: Any, inner: Any) -> Tensor:
        """[batch * beams, ...] as [batch, beams, ...]; `inner` is the rest of the shape.

        Raises:
            ValueError: the shape is another.
        """
        out = reshape(part, concat([[self._batch, self._width], shape(part)[1:]], 0))
        wanted = TensorShape([self.static_batch, self._width]).concatenate(_static(inner))
        if not out.shape.is_compatible_with(wanted):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  The "
                f"reshaped tensor has shape: {out.shape}.  We expected it to have shape "
                f"(batch_size, beam_width, depth) == {wanted}.  Perhaps you forgot to create a "
                "zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        out.set_shape(wanted)
        return out

    def split_if_batched(self, part: Any, inner: Any) -> Any:
        """`split`, but arrays and scalars as they are."""
        return self.split(part, inner) if self._rank(part) >= 1 else part

    def merge_if_batched(self, part: Any, inner: Any) -> Any:
        """`merge`, but arrays and scalars as they are."""
        return self.merge(part, inner) if self._rank(part) >= 2 else part

    @staticmethod
    def _rank(part: Any) -> int:
        if isinstance(part, TensorArray):
            return 0
        rank = part.shape.ndims
        if rank is None:
            raise ValueError(f"Expected tensor ({part}) to have known rank, but ndims == None.")
        return int(rank)

    def pick(
        self, part: Any, places: Any, step: Any, rows: list[Any], name: str | None = None
    ) -> Tensor:
        """Rows of `part` by their places in each example.

        Args:
            part: a tensor [batch, ...].
            places: an int tensor [batch, beams].
            step: the number of rows of an example.
            rows: the shape that makes rows of the tensor.
            name: a name for the operations.
        """
        with name_scope(name, "tensor_gather_helper"):
            first = expand_dims(tensor_range(self._batch) * step, 1)
            found = gather(reshape(part, rows), reshape(places + first, [-1]))
            out = reshape(found, shape(part)[: 1 + len(rows)], name="output")
            inner = part.shape[1 : 1 + len(rows)]
            out.set_shape(TensorShape([self.static_batch]).concatenate(inner))
            return out

    def pick_if_batched(self, part: Any, parents: Any, rows: list[Any]) -> Any:
        """The beams that others grew from; arrays, and what has no beams, as they are."""
        if self._rank(part) < len(rows):
            return part
        return self.pick(part, parents, self._width, rows)
