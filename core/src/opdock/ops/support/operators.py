"""Python's operators on tensors and sparse tensors.

Importing this module installs them. `==` stays identity until `tf.enable_tensor_equality`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.compat.forward import forward_compatible
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import executing_eagerly_outside_functions, name_scope
from opdock.graph.variables.variable import Variable
from opdock.ops.arithmetic import (
    add,
    add_op,
    add_v2_op,
    floor_mod_op,
    floormod,
    mul_op,
    multiply,
    pow,
    sub_op,
    subtract,
)
from opdock.ops.compare import (
    equal_op,
    greater,
    greater_equal,
    greater_equal_op,
    greater_op,
    less,
    less_equal,
    less_equal_op,
    less_op,
    logical_and,
    logical_and_op,
    logical_not,
    logical_not_op,
    logical_or,
    logical_or_op,
    logical_xor,
    not_equal_op,
)  # fmt: skip
from opdock.ops.composed.division import as_quotient, div, floordiv, truediv
from opdock.ops.composed.subscripts import slice_helper
from opdock.ops.elementary import abs, neg_op, negative
from opdock.ops.registry import OpSpec, get

__all__: list[str] = []

BinaryFn = Callable[..., Any]
_ADD_V2_KNOWN: Final = (2019, 6, 25)
"""The day from which TF's own graphs have AddV2 for `+`."""


def _add(x: Any, y: Any, name: str | None = None) -> Any:
    """`x + y`: `AddV2`, or `Add` for strings, and where graphs are to be what older TF knows."""
    is_old = x.dtype.base_dtype is dtypes.string or not forward_compatible(*_ADD_V2_KNOWN)
    return (add_op if is_old else add_v2_op)(x, y, name=name)


def _mul(x: Any, y: Any, name: str | None = None) -> Any:
    """`x * y`; a SparseTensor on the right keeps its indices."""
    if isinstance(y, SparseTensor):
        values = get("SparseDenseCwiseMul")(y.indices, y.values, y.dense_shape, x, name=name)
        return SparseTensor(y.indices, values, y.dense_shape)
    return mul_op(x, y, name=name)


def _matmul(x: Any, y: Any, name: str | None = None) -> Any:
    from opdock.ops.linalg import matmul

    return matmul(x, y, name=name)


def _left(fn: BinaryFn, scope_name: str) -> BinaryFn:
    """`x op y` with the tensor on the left; `y` is converted inside the op's scope."""
    reflected = f"__r{scope_name}__"
    plain = isinstance(fn, OpSpec) or fn is _add or fn is _mul

    def operator(x: Any, y: Any) -> Any:
        if not isinstance(x, Tensor):
            return _PUBLIC[scope_name](x, y)
        if plain and type(y) is Tensor:
            return fn(x, y, name=scope_name)  # nothing to convert, so no scope to open
        with name_scope(None, scope_name, [x, y]) as scope:
            if not isinstance(y, (Tensor, SparseTensor)):
                try:
                    y = convert_to_tensor(y, preferred_dtype=x.dtype.base_dtype, name="y")
                except TypeError:
                    # The right-hand side may know how to combine itself with a tensor.
                    if hasattr(type(y), reflected):
                        return NotImplemented
                    raise
            return fn(x, y, name=scope)

    operator.__name__ = f"__{scope_name}__"
    return operator


def _right(fn: BinaryFn, scope_name: str) -> BinaryFn:
    """`y op x` with the tensor on the right; the left operand takes its type."""

    def operator(x: Any, y: Any) -> Any:
        if not isinstance(x, Tensor):
            if isinstance(y, (int, float, complex)):
                y = dtypes.as_dtype(x.dtype).as_numpy_dtype(y)
            return _PUBLIC[scope_name](y, x)
        with name_scope(None, scope_name, [y, x]) as scope:
            y = convert_to_tensor(y, dtype=x.dtype.base_dtype, name="x")
            return fn(y, x, name=scope)

    operator.__name__ = f"__r{scope_name}__"
    return operator


def _method(fn: BinaryFn, public: BinaryFn) -> BinaryFn:
    """`fn`, often an op definition, as something that becomes a method when a class holds it."""

    def operator(*operands: Any) -> Any:
        return fn(*operands) if isinstance(operands[0], Tensor) else public(*operands)

    return operator


def _compared(op: OpSpec, same: bool) -> BinaryFn:
    """`==` or `!=`: of elements, where a program asked for it and its operations run at once."""

    def operator(x: Any, y: Any) -> Any:
        if Tensor._USE_EQUALITY and y is not None and executing_eagerly_outside_functions():
            # A tensor that has its value, like a variable there, tells no graph.
            graph = getattr(x, "graph", None) if isinstance(x, Tensor) else None
            if graph is None or graph.building_function:
                return op(x, y, incompatible_shape_error=False)
        return (x is y) == same if x is y or y is None else NotImplemented

    return operator


_BINARY: dict[str, BinaryFn] = {
    "add": _add, "sub": sub_op, "mul": _mul, "div": div, "truediv": truediv, "floordiv": floordiv,
    "mod": floor_mod_op, "pow": pow, "matmul": _matmul, "and": logical_and_op, "or": logical_or_op,
    "xor": logical_xor,
}  # fmt: skip


# What an operator does for a class that has it of `Tensor`, and is none: public functions ask their
# dispatchers.
_PUBLIC: dict[str, BinaryFn] = {
    "add": add, "sub": subtract, "mul": multiply, "div": div, "truediv": truediv,
    "floordiv": floordiv, "mod": floormod, "pow": pow, "matmul": _matmul, "and": logical_and,
    "or": logical_or, "xor": logical_xor,
}  # fmt: skip


def _sparse(op: str, scope_name: str) -> BinaryFn:
    """`sparse op dense`: the dense side broadcasts, the indices stay."""

    def operator(sp: SparseTensor, y: Any) -> SparseTensor:
        with name_scope(None, scope_name, [sp.indices, sp.values, sp.dense_shape, y]) as scope:
            y = convert_to_tensor(y, dtype=sp.dtype.base_dtype, name="y")
            values = get(op)(sp.indices, sp.values, sp.dense_shape, y, name=scope)
            return SparseTensor(sp.indices, values, sp.dense_shape)

    operator.__name__ = f"__{scope_name}__"
    return operator


def _sparse_truediv(sp: SparseTensor, y: Any) -> SparseTensor:
    """`sparse / dense`: integers are divided as floats."""
    with name_scope(None, "truediv", [sp.indices, sp.values, sp.dense_shape, y]) as scope:
        y = convert_to_tensor(y, dtype=sp.dtype.base_dtype, name="y")
        values = get("SparseDenseCwiseDiv")(
            sp.indices, as_quotient(sp.values), sp.dense_shape, as_quotient(y), name=scope
        )
        return SparseTensor(sp.indices, values, sp.dense_shape)


def install() -> None:
    """Gives Tensor and SparseTensor their operators."""
    override = Tensor._override_operator
    for scope_name, fn in _BINARY.items():
        override(f"__{scope_name}__", _left(fn, scope_name))
        override(f"__r{scope_name}__", _right(fn, scope_name))
    for operator, op, public in (
        ("__lt__", less_op, less), ("__le__", less_equal_op, less_equal),
        ("__gt__", greater_op, greater), ("__ge__", greater_equal_op, greater_equal),
    ):  # fmt: skip
        override(operator, _method(op, public))
    for operator, op, same in (("__eq__", equal_op, True), ("__ne__", not_equal_op, False)):
        override(operator, _compared(op, same))
        setattr(Variable, operator, _compared(op, same))
    override("__getitem__", slice_helper)
    override("__invert__", _method(logical_not_op, logical_not))
    override("__neg__", _method(neg_op, negative))
    override("__abs__", _method(abs, abs))
    for scope_name, name in (
        ("mul", "SparseDenseCwiseMul"), ("div", "SparseDenseCwiseDiv"),
    ):  # fmt: skip
        setattr(SparseTensor, f"__{scope_name}__", _sparse(name, scope_name))
    setattr(SparseTensor, "__truediv__", _sparse_truediv)  # noqa: B010
    # Those of variables only read the variable first, and are documented as the same.
    for operator in Tensor.OVERLOADABLE_OPERATORS - {"__getitem__", "__eq__", "__ne__"}:
        if hasattr(Tensor, operator):
            functools.update_wrapper(getattr(Variable, operator), getattr(Tensor, operator))


install()
