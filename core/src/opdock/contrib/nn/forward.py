"""Derivatives forwards: how results change when arguments move in a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.autodiff.gradients import gradients
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.check import Assert
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.identity import identity_n

__all__ = ["fwd_gradients"]


def fwd_gradients(
    ys: Sequence[Any], xs: Sequence[Any], grad_xs: Sequence[Any] | None = None,
    assert_unused: bool = False,
) -> list[Tensor | None]:  # fmt: skip
    """The sum over `xs` of how each of `ys` changes with it, times how it changes.

    It takes the gradient of gradients: what is taken backwards is linear in what it is given, and
    its own gradient with regard to that goes forwards.

    Args:
        ys: tensors.
        xs: tensors on which they depend.
        grad_xs: how each of `xs` changes; by one when None.
        assert_unused: whether a step fails that computes the gradients in between, which none of
            the results needs.

    Returns:
        A tensor of the shape of each of `ys`, or None.
    """
    # Of any value: only what multiplies it is looked at.
    given = [ones_like(y) for y in ys]
    back: list[Any] = [
        convert_to_tensor(g) if isinstance(g, IndexedSlices) else g
        for g in gradients(ys, xs, grad_ys=given)
    ]
    if assert_unused:
        with control_dependencies([g for g in back if g is not None]):
            unused = Assert(False, ["gradients in between were computed"], name="fwd_gradients")
        with control_dependencies([unused]):
            known = iter(identity_n([g for g in back if g is not None]))
            back = [None if g is None else next(known) for g in back]
    back = [zeros_like(x) if g is None else g for x, g in zip(xs, back, strict=True)]
    for x, g in zip(xs, back, strict=True):
        g.set_shape(x.shape)
    forward: list[Tensor | None] = gradients(back, given, grad_ys=grad_xs)
    return forward
