"""Public functions of matrices that take operators too: `tf.linalg.trace(operator)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from opdock.graph.nodes import dispatch
from opdock.ops.linalg import adjoint

__all__ = ["register"]

_operators: set[type] = set()


def _matmul(
    a: Any, b: Any, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool,
    a_is_sparse: bool, b_is_sparse: bool, name: str | None,
) -> Any:  # fmt: skip
    if transpose_a or transpose_b:
        raise ValueError("Transposing not supported at this time.")
    if a_is_sparse or b_is_sparse:
        raise ValueError("Sparse methods not supported at this time.")
    named = _named(name)
    if type(a) in _operators:
        return a.matmul(b, adjoint=adjoint_a, adjoint_arg=adjoint_b, **named)
    # A B is the adjoint of what the operator can do from the left.
    return adjoint(b.matmul(a, adjoint=not adjoint_b, adjoint_arg=not adjoint_a, **named))


def _solve(matrix: Any, rhs: Any, adjoint: bool, name: str | None) -> Any:
    if type(matrix) not in _operators:
        raise ValueError(
            "Passing in `matrix` as a Tensor and `rhs` as a LinearOperator is not supported."
        )
    return matrix.solve(rhs, adjoint=adjoint, **_named(name))


def _inverse(input: Any, adjoint: bool, name: str | None) -> Any:
    inverse = input.inverse(**_named(name))
    return inverse.adjoint() if adjoint else inverse


def _cholesky(input: Any, name: str | None) -> Any:
    return input.cholesky(**_named(name))


def _determinant(input: Any, name: str | None) -> Any:
    return input.determinant(**_named(name))


def _diag_part(input: Any, name: str | None, k: Any, padding_value: Any) -> Any:
    if k != 0 or padding_value != 0:
        raise ValueError("Only the main diagonal of an operator can be taken.")
    return input.diag_part(**_named(name))


def _named(name: str | None) -> dict[str, str]:
    """A name, for methods with defaults of their own."""
    return {} if name is None else {"name": name}


# By the names of the public functions; each takes their arguments, all of them.
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "adjoint": lambda matrix, name: matrix.adjoint(**_named(name)),
    "cholesky": _cholesky,
    "logdet": lambda matrix, name: matrix.log_abs_determinant(**_named(name)),
    "matmul": _matmul,
    "matrix_determinant": _determinant,
    "matrix_diag_part": _diag_part,
    "matrix_inverse": _inverse,
    "matrix_solve": _solve,
    "trace": lambda x, name: x.trace(**_named(name)),
}


def register(kind: type) -> None:
    """Has a class of operators answer to the public functions."""
    _operators.add(kind)
    dispatch.register(kind, _call)


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    ours = _FUNCTIONS.get(function.__name__)
    if ours is None:
        return NotImplemented
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return ours(**bound.arguments)
