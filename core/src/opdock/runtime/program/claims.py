"""Shapes that `set_shape` alone knows, held against what kernels give.

A program may say more of a tensor than its op can know. What follows is compiled for that shape,
down to generated code that reads as many elements as were promised, so a result of another shape
must not reach it. A result that broadcasts stands for the whole, as it does in TensorFlow where it
meets others: programs put a lone zero in the place of a tensor whose gradient alone they want.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import errors, shapes
from opdock.compiler.ir.block import Node

__all__ = ["HeldControl", "held_to_claims"]

Call = Callable[..., Any]


def held_to_claims(node: Node, call: Call) -> Call:
    """A node's call, whose results have the shapes that were claimed of them."""
    claims = {i: tuple(n or 0 for n in node.out_shapes[i] or ()) for i in node.claimed}
    if len(node.out_dtypes) == 1:
        (claim,) = claims.values()

        def one(*inputs: Any) -> Any:
            result = call(*inputs)
            if getattr(result, "shape", claim) == claim:
                return result
            return _fitted(node, 0, result, claim)

        return one

    def several(*inputs: Any) -> Any:
        results = call(*inputs)
        for i, claim in claims.items():
            if getattr(results[i], "shape", claim) != claim:
                results = list(results)
                results[i] = _fitted(node, i, results[i], claim)
        return results

    return several


class HeldControl:
    """A branch or loop, whose results have the shapes that were claimed of them.

    Args:
        node: the node.
        inner: what runs its functions.
    """

    def __init__(self, node: Node, inner: Any) -> None:
        self._inner = inner
        self._call = held_to_claims(node, inner)

    def __call__(self, *inputs: Any) -> Any:
        """The node's results."""
        return self._call(*inputs)

    def program(self, name: str) -> Any:
        """The program of one of its functions, by the attribute that holds it."""
        return self._inner.program(name)


def _fitted(node: Node, index: int, result: Any, claim: tuple[int, ...]) -> Any:
    if tuple(result.shape) == claim:
        return result  # a library's own class of shapes
    if isinstance(result, np.ndarray | np.generic):
        try:
            return np.array(np.broadcast_to(result, claim))
        except ValueError:
            pass  # It does not stand for the whole.
    raise errors.InvalidArgumentError(
        None,
        node.origin,
        f"{node.name}:{index} has shape {shapes.text(tuple(result.shape))}, but set_shape said "
        f"{shapes.text(claim)}, and what follows is compiled for that.",
    )
