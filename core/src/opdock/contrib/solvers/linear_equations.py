"""Conjugate gradients for linear equations."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock.contrib.solvers import util
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.compare import logical_and
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.matrix_norm import norm
from opdock.ops.fill import zeros

__all__ = ["CGState", "conjugate_gradient"]


class CGState(NamedTuple):
    """Where `conjugate_gradient` ended.

    Attributes:
        i: how many steps it took.
        x: the solution [rows].
        r: what is left of the right-hand side [rows].
        p: the direction of the next step [rows].
        gamma: the inner product of `r` and what the preconditioner makes of it.
    """

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def conjugate_gradient(
    operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: Any = 1e-4,
    max_iter: Any = 20, name: str = "conjugate_gradient",
) -> CGState:  # fmt: skip
    """The x for which `A x` is `rhs`, by steps that only apply A.

    Args:
        operator: A, which is self-adjoint and positive definite, as `util.create_operator` makes
            it; others need the same attributes.
        rhs: a vector [rows].
        preconditioner: an operator that is near the inverse of A and easy to apply.
        x: where to begin, a vector [rows]; zeros when None.
        tol: it ends when the residual is this part of what it was at first,
        max_iter: or after so many steps.
        name: a name for the operations.
    """

    def conditioned(r: Tensor) -> Any:
        return r if preconditioner is None else preconditioner.apply(r)

    def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> CGState:
        z = operator.apply(p)
        alpha = gamma / util.dot(p, z)
        x = util.shaped_as(x, x + alpha * p)
        r = util.shaped_as(r, r - alpha * z)
        q = conditioned(r)
        left = util.dot(r, q)
        return CGState(i + 1, x, r, util.shaped_as(p, q + left / gamma * p), left)

    with name_scope(name):
        r = expand_dims(convert_to_tensor(rhs), -1)
        if x is None:
            x = expand_dims(zeros(operator.shape[1:], dtype=r.dtype.base_dtype), -1)
        else:
            x = expand_dims(convert_to_tensor(x), -1)
            r = r - operator.apply(x)
        p = conditioned(r)
        least = tol * norm(r)
        end = CGState(
            *while_loop(
                lambda i, _x, r, _p, _gamma: logical_and(i < max_iter, norm(r) > least),
                step,
                CGState(convert_to_tensor(0), x, r, p, util.dot(r, p)),
            )
        )
        vectors = {k: squeeze(getattr(end, k), [-1]) for k in ("x", "r", "p")}
        return end._replace(**vectors)
