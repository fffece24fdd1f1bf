"""Shapes that `set_shape` alone knows, held against what kernels give.

A program may say more of a tensor than its op can know. What follows is compiled for that shape,
down to generated code that reads as many elements as were promised, so a result of another shape
must not reach it: what is left of the step is compiled anew, for the shape that the result has
(`recover/onward.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from opdock import errors, shapes
from opdock.compiler.ir.block import Node
from opdock.graph.nodes.traits import Control

__all__ = ["ClaimError", "HeldControl", "held_to_claims", "strayed"]

Call = Callable[..., Any]


class ClaimError(errors.InvalidArgumentError):
    """A result has another shape than was claimed. Programs deal with it, or tell it as `plain`.

    Attributes:
        results: all that the node gave.
        whole: the same where each stands for the whole of its claim, as what broadcasts does;
            None where one cannot.
        at: the step of its program.
        loose: the name of the variable that has been given another shape.
        ran: the steps that have run, where these are not those before it.
        values: what there was then, by slot, where the caller cannot see it.
    """

    results: Sequence[Any] = ()
    whole: Sequence[Any] | None = None
    at: int | None = None
    loose: str = ""
    ran: Collection[int] | None = None
    values: dict[int, Any] | None = None

    def plain(self) -> errors.InvalidArgumentError:
        """The error as who called the program is told it."""
        return errors.InvalidArgumentError(None, self.op, self.message)


def strayed(cell: Any, static: shapes.Shape, given: shapes.Shape) -> ClaimError:
    """The error of an assignment that gave a variable another shape than the program says."""
    error = ClaimError(
        None, None,
        f"Variable {cell.name} has shape {shapes.text(given)} now, but its graph said "
        f"{shapes.text(static)}, and what follows is compiled for that.",
    )  # fmt: skip
    error.results, error.loose = (cell,), cell.name
    return error


def held_to_claims(node: Node, call: Call) -> Call:
    """A node's call, whose results have the shapes that were claimed of them.

    Those of control flow are held to all that is known of them: its functions may know it by a
    claim.
    """
    controls = node.traits.control is not Control.NONE
    claims = {
        i: tuple(n or 0 for n in shape)
        for i, shape in enumerate(node.out_shapes)
        if shape is not None and shapes.is_fully_defined(shape)
        and (i in node.claimed or (controls and not node.out_dtypes[i]._is_handle))
    }  # fmt: skip
    if not claims:
        return call
    if len(node.out_dtypes) == 1:
        (claim,) = claims.values()

        def one(*inputs: Any) -> Any:
            result = call(*inputs)
            if getattr(result, "shape", claim) != claim:
                _hold(node, (result,), claims)
            return result

        return one

    def several(*inputs: Any) -> Any:
        results = call(*inputs)
        for i, claim in claims.items():
            if getattr(results[i], "shape", claim) != claim:
                _hold(node, results, claims)
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


def _hold(node: Node, results: Sequence[Any], claims: dict[int, tuple[int, ...]]) -> None:
    """Raises ClaimError where a result has another shape than its claim."""
    wrong = {  # the shapes of a library may be of a class of its own
        i: claim for i, claim in claims.items() if tuple(results[i].shape) != claim
    }
    for i, claim in wrong.items():
        error = ClaimError(
            None,
            node.origin,
            f"{node.name}:{i} has shape {shapes.text(tuple(results[i].shape))}, but set_shape said "
            f"{shapes.text(claim)}, and what follows is compiled for that.",
        )
        error.results = results
        error.whole = _whole(results, wrong)
        raise error


def _whole(results: Sequence[Any], claims: dict[int, tuple[int, ...]]) -> Sequence[Any] | None:
    made = list(results)
    for i, claim in claims.items():
        if not isinstance(made[i], np.ndarray | np.generic) or (made[i].size and 0 in claim):
            return None  # in the latter case nothing would be left of it
        try:
            made[i] = np.array(np.broadcast_to(made[i], claim))
        except ValueError:
            return None
    return made
