"""Conjugate gradients for least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock.contrib.solvers import util
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.compare import logical_and
from opdock.ops.composed.loops import while_loop
from opdock.ops.fill import zeros

__all__ = ["CGLSState", "cgls"]


class CGLSState(NamedTuple):
    """Where `cgls` ended.

    Attributes:
        i: how many steps it took.
        x: the solution [columns].
        r: what is left of the right-hand side [rows].
        p: the direction of the next step [columns].
        gamma: the square of the length of the adjoint's product with `r`.
    """

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def cgls(
    operator: Any, rhs: Any, tol: Any = 1e-6, max_iter: Any = 20, name: str = "cgls"
) -> CGLSState:
    """The x for which `A x` is nearest to `rhs`, by steps that only apply A and its adjoint.

    Args:
        operator: A, as `util.create_operator` makes it; others need the same attributes.
        rhs: a vector [rows].
        tol: it ends when the normal equations' residual is this part of what it was at first,
        max_iter: or after so many steps.
        name: a name for the operations.
    """
    with name_scope(name):
        b = expand_dims(convert_to_tensor(rhs), -1)
        p = operator.apply_adjoint(b)
        gamma = util.l2norm_squared(p)
        least = tol * tol * gamma
        x = expand_dims(zeros(operator.shape[1:], dtype=b.dtype.base_dtype), -1)

        def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> CGLSState:
            q = operator.apply(p)
            alpha = gamma / util.l2norm_squared(q)
            x = util.shaped_as(x, x + alpha * p)
            r = util.shaped_as(r, r - alpha * q)
            s = operator.apply_adjoint(r)
            left = util.l2norm_squared(s)
            return CGLSState(i + 1, x, r, util.shaped_as(p, s + left / gamma * p), left)

        end = CGLSState(
            *while_loop(
                lambda i, _x, _r, _p, gamma: logical_and(i < max_iter, gamma > least),
                step,
                CGLSState(convert_to_tensor(0), x, b, p, gamma),
            )
        )
        vectors = {k: squeeze(getattr(end, k), [-1]) for k in ("x", "r", "p")}
        return end._replace(**vectors)
