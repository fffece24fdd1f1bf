"""Products of 8-bit integers, added up in 32 bits: what quantized ops are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import errors
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query, Type
from opdock_cpu.onednn.matmul import matrices
from opdock_cpu.onednn.memory import any_layout, dense
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.primitive import Attributes, Plan, Primitive

__all__ = ["ConvolutionS32", "ProductS32"]

Array = npt.NDArray[Any]


class _Shifted:
    """Calls a primitive with the value that stands for 0 in the unsigned factor."""

    def __init__(self, call: Call, target: tuple[int, ...], zero_point: int) -> None:
        self.call = call
        self._run = call.bind()
        self._target = target
        self._zero = [np.array([zero_point], np.int32)] if zero_point else []

    def _compute(self, a: Array, b: Array) -> Array:
        if a.dtype != np.uint8 or b.dtype != np.int8:
            raise errors.InvalidArgumentError(
                None, None, f"expected uint8 and int8 factors, got {a.dtype} and {b.dtype}"
            )
        out = np.empty(self._target, np.int32)
        self._run(a, b, out, *self._zero)
        return out


def _zero_points(zero_point: int) -> tuple[Attributes | None, list[tuple[int, Any]]]:
    if not zero_point:
        return None, []
    return (
        Attributes(zero_points=[(Arg.SRC, 0)]),
        [(Arg.ZERO_POINTS | Arg.SRC, dense((1,), Type.S32))],
    )


class ProductS32(_Shifted):
    """(a - zero_point) @ b for a uint8 [m, k] and b int8 [k, n], exact, as int32.

    Args:
        rows, inner, columns: m, k and n.
        zero_point: the value of `a` that stands for 0.
        transpose_b: whether b comes as [n, k].
    """

    def __init__(
        self, rows: int, inner: int, columns: int, zero_point: int = 0, transpose_b: bool = False
    ) -> None:
        shape = (columns, inner) if transpose_b else (inner, columns)
        a, b = dense((rows, inner), Type.U8), matrices(shape, transpose_b, Type.S8)
        out = dense((rows, columns), Type.S32)
        attributes, extra = _zero_points(zero_point)
        plan = Plan("matmul", a, any_layout(b.dims, Type.S8), None, out, attributes)
        args = [(Arg.SRC, a), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS)), (Arg.DST, out), *extra]
        call = Call(Primitive(plan, args), [a, b, out, *(d for _, d in extra)], [2])
        super().__init__(call, (rows, columns), zero_point)
        self._shapes = ((rows, inner), shape)

    def __call__(self, a: Array, b: Array) -> Array:
        """The product.

        Raises:
            InvalidArgumentError: other shapes or types than promised.
        """
        if (a.shape, b.shape) != self._shapes:
            raise errors.InvalidArgumentError(
                None, None, f"expected shapes {self._shapes}, got {(a.shape, b.shape)}"
            )
        return self._compute(a, b)


class ConvolutionS32(_Shifted):
    """Convolution of uint8 images with int8 weights [*window, in, out], exact, as int32.

    Args:
        shape: the geometry; its `kind` is `Type.U8`.
        zero_point: the value of the input that stands for 0, with which it is padded too.
    """

    def __init__(self, shape: ConvShape, zero_point: int = 0) -> None:
        weights = shape.weights(Type.S8)
        attributes, extra = _zero_points(zero_point)
        out = shape.dst(Type.S32)
        plan = Plan(
            "convolution_forward", Prop.INFERENCE, Alg.CONV_DIRECT, shape.src(),
            any_layout(shape.weight_dims, Type.S8), None, out, *shape.geometry, attributes,
        )  # fmt: skip
        args = [
            (Arg.SRC, shape.src()), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS)), (Arg.DST, out),
            *extra,
        ]  # fmt: skip
        call = Call(Primitive(plan, args), [shape.src(), weights, out, *(d for _, d in extra)], [2])
        where = shape.where
        super().__init__(call, (shape.batch, *where.out, shape.outputs), zero_point)
        inner = shape.channels // shape.groups
        self._shapes = (
            (shape.batch, *where.size, shape.channels), (*where.window, inner, shape.outputs),
        )  # fmt: skip

    def __call__(self, x: Array, weights: Array) -> Array:
        """The convolution, channels last.

        Raises:
            InvalidArgumentError: other shapes or types than promised.
        """
        if (x.shape, weights.shape) != self._shapes:
            raise errors.InvalidArgumentError(
                None, None, f"expected shapes {self._shapes}, got {(x.shape, weights.shape)}"
            )
        return self._compute(x, weights)
