"""What linear operators share: hints, dimensions, matrices brought to one batch shape."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable import Variable
from opdock.ops.array import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    shape,
)
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less
from opdock.ops.complex import imag
from opdock.ops.composed.check_static import assert_proper_iterable
from opdock.ops.control import no_op
from opdock.ops.elementary import abs as absolute
from opdock.ops.joining import concat
from opdock.ops.solve import cholesky_solve, matrix_solve, matrix_triangular_solve
from opdock.shapes import Dimension, TensorShape


def dimension(known: TensorShape, index: int) -> Dimension:
    """A dimension of a static shape; unknown if the rank is."""
    return Dimension(None) if known.dims is None else known.dims[index]


def static_batch(known: TensorShape) -> list[Any] | None:
    """A batch shape as numbers, or None where it is not known."""
    return known.as_list() if known.is_fully_defined() else None


def parameter(value: Any, name: str) -> Any:
    """A parameter of an operator: variables stay what they are."""
    return value if isinstance(value, Variable) else convert_to_tensor(value, name=name)


def refuse_variable(value: Any, name: str) -> None:
    """Raises TypeError for a variable where a number is needed once and for all."""
    if isinstance(value, Variable):
        raise TypeError(f"Argument {name} cannot be reference type. Found: {type(value)}")


def at_least(value: Any, name: str, rank: int) -> None:
    """Raises ValueError where a tensor has too few dimensions."""
    if value.shape.ndims is not None and value.shape.ndims < rank:
        some = "1 dimension" if rank == 1 else f"{rank} dimensions"
        raise ValueError(f"Argument {name} must have at least {some}.  Found: {value}")


def use_operator_or_provided_hint_unless_contradicting(
    operator: Any, hint_attr_name: str, provided_hint_value: bool | None, message: str
) -> bool | None:
    """What an operator's hint and the user's say; ValueError if they contradict each other."""
    own, given = getattr(operator, hint_attr_name), provided_hint_value
    if own is not None and given is not None and bool(own) != bool(given):
        raise ValueError(message)
    return own if own is not None else given


def all_hint(operators: list[Any], name: str, given: bool | None, what: str) -> bool | None:
    """True if all operators have the hint; ValueError if the user denies it then."""
    if all(getattr(operator, name) for operator in operators):
        if given is False:
            kind = name.removeprefix("is_").replace("_", " ").replace("non s", "non-s")
            kind = kind.replace("self a", "self-a")
            raise ValueError(f"The {what} of {kind} operators is always {kind}.")
        return True
    return given


def common_dtype(operators: Any) -> tuple[list[Any], Any]:
    """The operators as a list, and their type.

    Raises:
        ValueError: there are none.
        TypeError: their types differ.
    """
    found = list(operators)
    if not found:
        raise ValueError(f"Expected a non-empty list of operators. Found: {found}")
    if any(operator.dtype != found[0].dtype for operator in found):
        types = "   ".join(f"({o.name}, {o.dtype})" for o in found)
        raise TypeError(f"Expected all operators to have the same dtype.  Found {types}")
    return found, found[0].dtype


def common_batch(operators: list[Any]) -> TensorShape:
    """The static batch shape that those of all operators broadcast to."""
    found: TensorShape = operators[0].batch_shape
    for operator in operators[1:]:
        found = broadcast_static_shape(found, operator.batch_shape)
    return found


def common_batch_tensor(operators: list[Any]) -> Any:
    """The same as a vector."""
    found = operators[0].batch_shape_tensor()
    for operator in operators[1:]:
        found = broadcast_dynamic_shape(found, operator.batch_shape_tensor())
    return found


def broadcast_matrix_batch_dims(batch_matrices: Any, name: str | None = None) -> list[Any]:
    """Matrices broadcast to the batch shape that they have in common.

    Raises:
        ValueError: one has fewer than two dimensions, or their batches do not fit.
        TypeError: it is a single tensor.
    """
    with name_scope(name or "broadcast_matrix_batch_dims"):
        assert_proper_iterable(batch_matrices)
        matrices = [convert_to_tensor(m) for m in batch_matrices]
        for matrix in matrices:
            if matrix.shape.ndims is not None and matrix.shape.ndims < 2:
                raise ValueError(
                    f"Expected [batch] matrix to have at least two dimensions.  Found: {matrix}"
                )
        return _to_one_batch(matrices) if len(matrices) > 1 else matrices


def _to_one_batch(matrices: list[Any]) -> list[Any]:
    known = matrices[0].shape[:-2]
    for matrix in matrices[1:]:
        known = broadcast_static_shape(known, matrix.shape[:-2])
    if known.is_fully_defined():
        return [
            m if m.shape[:-2].as_list() == known.as_list()
            else broadcast_to(m, concat([known.as_list(), shape(m)[-2:]], 0))
            for m in matrices
        ]  # fmt: skip
    batch: Any = shape(matrices[0])[:-2]
    for matrix in matrices[1:]:
        batch = broadcast_dynamic_shape(batch, shape(matrix)[:-2])
    return [broadcast_to(m, concat([batch, shape(m)[-2:]], 0)) for m in matrices]


def matrix_solve_with_broadcast(
    matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None
) -> Any:
    """`tf.matrix_solve` of matrices whose batches broadcast."""
    with name_scope(name, "MatrixSolveWithBroadcast"):
        matrix, rhs = _equations(matrix, rhs)
        return matrix_solve(matrix, rhs, adjoint=adjoint)


def matrix_triangular_solve_with_broadcast(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """`tf.matrix_triangular_solve` of matrices whose batches broadcast."""
    with name_scope(name, "MatrixTriangularSolve"):
        matrix, rhs = _equations(matrix, rhs)
        return matrix_triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


def cholesky_solve_with_broadcast(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """`tf.cholesky_solve` of matrices whose batches broadcast."""
    with name_scope(name, "CholeskySolveWithBroadcast"):
        chol, rhs = broadcast_matrix_batch_dims([chol, rhs])
        return cholesky_solve(chol, rhs)


def _equations(matrix: Any, rhs: Any) -> list[Any]:
    matrix = convert_to_tensor(matrix, name="matrix")
    rhs = convert_to_tensor(rhs, dtype=matrix.dtype, name="rhs")
    return broadcast_matrix_batch_dims([matrix, rhs])


def assert_no_entries_with_modulus_zero(
    x: Any, message: str | None = None, name: str = "assert_no_entries_with_modulus_zero"
) -> Any:
    """An operation that fails where an entry is 0."""
    with name_scope(name):
        x = convert_to_tensor(x, name="x")
        zero = convert_to_tensor(0, dtype=x.dtype.real_dtype)
        return assert_less(zero, absolute(x), message=message)


def assert_zero_imag_part(
    x: Any, message: str | None = None, name: str = "assert_zero_imag_part"
) -> Any:
    """An operation that fails where an entry has an imaginary part."""
    with name_scope(name):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_complex:
            return no_op()
        zero = convert_to_tensor(0, dtype=x.dtype.real_dtype)
        return assert_equal(zero, imag(x), message=message)


def assert_compatible_matrix_dimensions(operator: Any, x: Any) -> Any:
    """An operation that fails where an operator cannot be applied to a matrix."""
    return assert_equal(
        shape(x)[-2], operator.domain_dimension_tensor(),
        message="Dimensions are not compatible.  shape[-2] of argument to be the same as this "
        "operator",
    )  # fmt: skip


def to_complex(values: Any) -> Any:
    """Real values as complex ones of the same precision."""
    values = convert_to_tensor(values)
    if values.dtype.is_complex:
        return values
    wide = values.dtype.base_dtype == dtypes.float64
    return cast(values, dtypes.complex128 if wide else dtypes.complex64)
