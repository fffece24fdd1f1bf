"""2-D pooling ops: MaxPool, AvgPool, MaxPoolWithArgmax, and their gradients."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Fails, Formatted, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.nn_util import emit, renamed, zeros_like
from opdock.ops.support.windows import pool_shape

__all__ = ["max_pool_with_argmax"]

_WINDOW = "ksize: list(int) >= 4, strides: list(int) >= 4"
_PADDING = "padding: {'SAME', 'VALID'}"
_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_MAX_FORMAT = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_FLOATS = "T: {half, bfloat16, float, double}"
_MAX_TYPES = (
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT"
)
_REAL = "T: realnumbertype = DT_FLOAT"
_ORIG = "orig_input: T, orig_output: T, grad: T"
_DYNAMIC = "ksize: int32, strides: int32"

avg_pool_op = define_op(
    "AvgPool", "value: T -> output: T", f"{_WINDOW}, {_PADDING}, {_FORMAT}, {_FLOATS}"
)
avg_pool_grad_op = define_op(
    "AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T",
    f"{_WINDOW}, {_PADDING}, {_FORMAT}, {_FLOATS}",
)  # fmt: skip
avg_pool_grad_op.declare(Traits(fails=Fails.BY_SHAPE, layout=Formatted((1,), (0,), leads=False)))
max_pool_op = define_op(
    "MaxPool", "input: T -> output: T", f"{_MAX_TYPES}, {_WINDOW}, {_PADDING}, {_MAX_FORMAT}"
)
for _op in (max_pool_op, avg_pool_op):
    _op.declare(Traits(fails=Fails.BY_SHAPE, layout=Formatted((0,), leads=False)))
max_pool_v2_op = define_op(
    "MaxPoolV2", f"input: T, {_DYNAMIC} -> output: T", f"{_MAX_TYPES}, {_PADDING}, {_MAX_FORMAT}"
)
max_pool_v2_op.declare(Traits(layout=Formatted((0,), (1, 2), leads=False)))
max_pool_grad_op = define_op(
    "MaxPoolGrad", f"{_ORIG} -> output: T", f"{_WINDOW}, {_PADDING}, {_FORMAT}, {_REAL}"
)
max_pool_grad_v2_op = define_op(
    "MaxPoolGradV2", f"{_ORIG}, {_DYNAMIC} -> output: T", f"{_PADDING}, {_FORMAT}, {_REAL}"
)
max_pool_grad_grad_op = define_op(
    "MaxPoolGradGrad", f"{_ORIG} -> output: T",
    f"{_WINDOW}, {_PADDING}, {_FORMAT}, T: realnumbertype",
)  # fmt: skip
for _op in (max_pool_grad_op, max_pool_grad_grad_op):
    _op.declare(Traits(fails=Fails.BY_SHAPE, layout=Formatted((0, 1, 2), leads=False)))
max_pool_grad_grad_v2_op = define_op(
    "MaxPoolGradGradV2", f"{_ORIG}, {_DYNAMIC} -> output: T",
    f"{_PADDING}, {_FORMAT}, T: realnumbertype",
)  # fmt: skip
for _op in (max_pool_grad_v2_op, max_pool_grad_grad_v2_op):
    _op.declare(Traits(layout=Formatted((0, 1, 2), (3, 4), leads=False)))

_ARGMAX = "include_batch_in_index: bool = false"
max_pool_with_argmax_op = define_op(
    "MaxPoolWithArgmax", "input: T -> output: T, argmax: Targmax",
    f"{_WINDOW}, Targmax: {{int32, int64}} = DT_INT64, {_PADDING}, {_ARGMAX}, T: realnumbertype",
)  # fmt: skip
max_pool_grad_with_argmax_op = define_op(
    "MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T",
    f"{_WINDOW}, {_PADDING}, {_ARGMAX}, Targmax: {{int32, int64}}, T: realnumbertype",
)  # fmt: skip
max_pool_grad_grad_with_argmax_op = define_op(
    "MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T",
    f"{_WINDOW}, {_PADDING}, {_ARGMAX}, Targmax: {{int32, int64}}, T: realnumbertype",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
@avg_pool_op.shape
def _avg_pool_shape(sig: ShapeSig) -> Shape:
    return pool_shape(sig, 4, "AvgPool requires")


@max_pool_op.shape
def _max_pool_shape(sig: ShapeSig) -> Shape:
    if sig.attrs["data_format"] == "NCHW_VECT_C":
        return _vect_c_shape(sig)
    return pool_shape(sig, 4, "MaxPool requires")


def _vect_c_shape(sig: ShapeSig) -> Shape:
    data = shapes.with_rank(sig.shapes[0], 5)
    inner = shapes.merge_dim(data[4], 4)
    flat = ShapeSig(sig.spec, sig.name, [data[:4]], sig.dtypes, sig.attrs, 1)
    pooled = pool_shape(flat, 4, "MaxPool requires")
    return shapes.concat(pooled, (inner,))


def _dynamic_shape(sig: ShapeSig, first: int) -> Shape:
    """The pooled shape when the window is an input, at position `first`."""
    data = shapes.with_rank(sig.shapes[0], 4)
    ksize, strides = sig.const(first), sig.const(first + 1)
    if ksize is None or strides is None:
        return (data[0], None, None, None)
    return pool_shape(
        sig, 4, "MaxPool requires", [int(k) for k in ksize], [int(s) for s in strides]
    )


@max_pool_v2_op.shape
def _max_pool_v2_shape(sig: ShapeSig) -> Shape:
    return _dynamic_shape(sig, 1)


@avg_pool_grad_op.shape
def _avg_pool_grad_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 4)


@max_pool_grad_op.shape
@max_pool_grad_v2_op.shape
@max_pool_grad_with_argmax_op.shape
def _like_input(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[0], 4)


@max_pool_grad_grad_op.shape
def _max_pool_grad_grad_shape(sig: ShapeSig) -> Shape:
    out = pool_shape(sig, 4, "MaxPool requires")
    shapes.merge(sig.shapes[0], sig.shapes[2])
    return shapes.merge(sig.shapes[1], out)


@max_pool_grad_grad_v2_op.shape
def _max_pool_grad_grad_v2_shape(sig: ShapeSig) -> Shape:
    out = _dynamic_shape(sig, 3)
    shapes.merge(sig.shapes[0], sig.shapes[2])
    return shapes.merge(sig.shapes[1], out)


@max_pool_with_argmax_op.shape
def _max_pool_with_argmax_shape(sig: ShapeSig) -> list[Shape]:
    return [pool_shape(sig, 4, "MaxPool requires")] * 2


@max_pool_grad_grad_with_argmax_op.shape
def _max_pool_grad_grad_with_argmax_shape(sig: ShapeSig) -> Shape:
    out = pool_shape(sig, 4, "MaxPool requires")
    shapes.merge(sig.shapes[0], sig.shapes[1])
    return shapes.merge(sig.shapes[2], out)


# ---------------------------------------------------------------- gradients
def _attrs(op: Operation, *names: str) -> dict[str, Any]:
    return {name: op.attrs[name] for name in names}


def _window(op: Operation) -> dict[str, Any]:
    return _attrs(op, "ksize", "strides", "padding", "data_format")


@avg_pool_op.gradient
def _avg_pool_grad(op: Operation, grad: Tensor) -> Tensor:
    return avg_pool_grad_op(emit("Shape", op.inputs[0]), grad, **_window(op))  # type: ignore[no-any-return]


@avg_pool_grad_op.gradient
def _avg_pool_grad_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    return [None, avg_pool_op(grad, **_window(op))]


@max_pool_op.gradient
def _max_pool_grad(op: Operation, grad: Tensor) -> Tensor:
    return max_pool_grad_op(op.inputs[0], op.outputs[0], grad, **_window(op))  # type: ignore[no-any-return]


@max_pool_v2_op.gradient
def _max_pool_v2_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, ksize, strides = op.inputs
    attrs = _attrs(op, "padding", "data_format")
    result = max_pool_grad_v2_op(data, op.outputs[0], grad, ksize, strides, **attrs)
    return [result, None, None]


@max_pool_grad_op.gradient
def _max_pool_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    data, out, _ = op.inputs
    result = max_pool_grad_grad_op(data, out, grad, **_window(op))
    return [zeros_like(data), zeros_like(out), result]


@max_pool_grad_v2_op.gradient
def _max_pool_grad_v2_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, out, _, ksize, strides = op.inputs
    attrs = _attrs(op, "padding", "data_format")
    result = max_pool_grad_grad_v2_op(data, out, grad, ksize, strides, **attrs)
    return [zeros_like(data), zeros_like(out), result, None, None]


@max_pool_grad_grad_op.gradient
def _max_pool_grad_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    data, out, _ = op.inputs
    result = max_pool_grad_op(data, out, grad, **_window(op))
    return [zeros_like(data), zeros_like(out), result]


@max_pool_grad_grad_v2_op.gradient
def _max_pool_grad_grad_v2_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, out, _, ksize, strides = op.inputs
    attrs = _attrs(op, "padding", "data_format")
    result = max_pool_grad_v2_op(data, out, grad, ksize, strides, **attrs)
    return [zeros_like(data), zeros_like(out), result, None, None]


def _argmax_attrs(op: Operation) -> dict[str, Any]:
    return _attrs(op, "ksize", "strides", "padding", "include_batch_in_index")


@max_pool_with_argmax_op.gradient
def _max_pool_with_argmax_grad(op: Operation, grad: Tensor, unused: Any) -> Tensor:
    return max_pool_grad_with_argmax_op(  # type: ignore[no-any-return]
        op.inputs[0], grad, op.outputs[1], **_argmax_attrs(op)
    )


@max_pool_grad_with_argmax_op.gradient
def _max_pool_grad_with_argmax_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, _, argmax = op.inputs
    result = max_pool_grad_grad_with_argmax_op(data, grad, argmax, **_argmax_attrs(op))
    return [zeros_like(data), result, None]


@max_pool_grad_grad_with_argmax_op.gradient
def _max_pool_grad_grad_with_argmax_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, _, argmax = op.inputs
    result = max_pool_grad_with_argmax_op(data, grad, argmax, **_argmax_attrs(op))
    return [zeros_like(data), result, None]


# ---------------------------------------------------------------- public functions
@extensible
def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC",
    Targmax: Any = None, name: str | None = None, output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:  # fmt: skip
    """Max pooling that also tells where each maximum was.

    Args:
        input: a 4-D real tensor [batch, height, width, channels].
        ksize: a list of 4 ints, the window.
        strides: a list of 4 ints, the steps.
        padding: "SAME" or "VALID".
        data_format: "NHWC".
        Targmax: the type of the indices, `tf.int32` or `tf.int64` (default).
        name: a name for the operation.
        output_dtype: an alias of `Targmax`.
        include_batch_in_index: whether indices count through the whole batch or start anew in
            each entry.

    Returns:
        `(output, argmax)`; an index is `(y * width + x) * channels + channel`.

    Raises:
        ValueError: another data format.
    """
    if data_format != "NHWC":
        raise ValueError("Data formats other than 'NHWC' are not yet supported")
    index_type = renamed("output_dtype", output_dtype, "Targmax", Targmax) or dtypes.int64
    return max_pool_with_argmax_op(
        input, ksize=list(ksize), strides=list(strides), padding=padding, Targmax=index_type,
        include_batch_in_index=include_batch_in_index, name=name,
    )  # fmt: skip
