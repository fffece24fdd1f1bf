"""Softmax, and the cross entropies that are fused with it."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, errors, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.loss import ensure_named
from opdock.ops.registry import Fails, OpSpec, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.nn_util import HALF_TYPES, emit, is_zero, renamed

__all__ = [
    "log_softmax", "softmax", "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2", "sparse_softmax_cross_entropy_with_logits",
]  # fmt: skip

_FLOATS = "T: {half, bfloat16, float, double}"

softmax_op = define_op("Softmax", "logits: T -> softmax: T", _FLOATS)
softmax_op.declare(Traits(fails=Fails.NEVER))
log_softmax_op = define_op("LogSoftmax", "logits: T -> logsoftmax: T", _FLOATS)
xent_op = define_op(
    "SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T", _FLOATS
)
sparse_xent_op = define_op(
    "SparseSoftmaxCrossEntropyWithLogits", "features: T, labels: Tlabels -> loss: T, backprop: T",
    f"{_FLOATS}, Tlabels: {{int32, int64}} = DT_INT64",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
@softmax_op.shape
@log_softmax_op.shape
def _softmax_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank_at_least(sig.shapes[0], 1)


@xent_op.shape
def _xent_shape(sig: ShapeSig) -> list[Shape]:
    features, labels = sig.shapes
    if _fits(features) and _fits(labels):
        try:
            both: Shape = shapes.merge(shapes.with_rank(features, 2), labels)
        except ValueError:
            both = shapes.broadcast(features, labels)
    else:
        both = shapes.broadcast(features, labels)
    if both is None:
        raise ValueError("Shape must be broadcasted with rank 2, but is rank is unknown.")
    if len(both) != 2:
        raise ValueError(f"Shape must be broadcasted with rank 2, but is rank {len(both)}")
    return [both[:1], both]


def _fits(shape: Shape) -> bool:
    return shape is None or len(shape) == 2


@sparse_xent_op.shape
def _sparse_xent_shape(sig: ShapeSig) -> list[Shape]:
    features = _ranked("logits", sig.shapes[0], 2)
    labels = _ranked("labels", sig.shapes[1], 1)
    batch = shapes.merge_dim(features[0], labels[0])
    return [(batch,), (batch, features[1])]


def _ranked(what: str, shape: Shape, rank: int) -> tuple[int | None, ...]:
    try:
        return shapes.with_rank(shape, rank)
    except ValueError as e:
        # In the words of TF's kernel, and then in those of its shape function.
        raise ValueError(
            f"{what} must be {rank}-D, but got shape {shapes.text(shape)}. {e}"
        ) from None


# ---------------------------------------------------------------- gradients
@softmax_op.gradient
def _softmax_grad(op: Operation, grad: Any) -> Any:
    softmax = op.outputs[0]
    total = emit("Sum", grad * softmax, -1, keep_dims=True)
    return (grad - total) * softmax


@log_softmax_op.gradient
def _log_softmax_grad(op: Operation, grad: Any) -> Any:
    softmax = emit("Exp", op.outputs[0])
    return grad - emit("Sum", grad, -1, keep_dims=True) * softmax


def _scale_rows(vector: Tensor, matrix: Tensor) -> Any:
    return emit("ExpandDims", vector, -1) * matrix


def _through_softmax(logits: Tensor, grad: Any) -> Any:
    """`grad` carried back through a softmax of `logits`."""
    softmax = softmax_op(logits)
    # The scalar product of each row, as TF computes it.
    along = emit("BatchMatMulV2", emit("ExpandDims", grad, 1), emit("ExpandDims", softmax, 2))
    return (grad - emit("Squeeze", along, squeeze_dims=[1])) * softmax


@xent_op.gradient
def _xent_grad(op: Operation, grad_loss: Any, grad_backprop: Any) -> list[Any]:
    logits = op.inputs[0]
    if grad_loss is None:
        return [_through_softmax(logits, grad_backprop), emit("Neg", grad_backprop)]
    grad = _scale_rows(grad_loss, op.outputs[1])
    label_grad = _scale_rows(grad_loss, emit("Neg", log_softmax_op(logits)))
    # The second output is softmax - labels, the first derivative: its gradient makes the second.
    if not is_zero(grad_backprop):
        grad = grad + _through_softmax(logits, grad_backprop)
        label_grad = label_grad - grad_backprop
    return [grad, label_grad]


@sparse_xent_op.gradient
def _sparse_xent_grad(op: Operation, grad_loss: Any, grad_backprop: Any) -> list[Any]:
    logits = op.inputs[0]
    if grad_loss is None:
        return [_through_softmax(logits, grad_backprop), None]
    grad = _scale_rows(grad_loss, op.outputs[1])
    if not is_zero(grad_backprop):
        grad = grad + _through_softmax(logits, grad_backprop)
    return [grad, None]


# ---------------------------------------------------------------- decompositions
def _shifted(logits: Tensor) -> Tensor:
    return emit("Sub", logits, emit("Max", logits, [-1], keep_dims=True))  # type: ignore[no-any-return]


@softmax_op.decomposition
def _softmax_parts(sig: Any, logits: Tensor) -> Tensor:
    powers = emit("Exp", _shifted(logits))
    return emit("RealDiv", powers, emit("Sum", powers, [-1], keep_dims=True))  # type: ignore[no-any-return]


@log_softmax_op.decomposition
def _log_softmax_parts(sig: Any, logits: Tensor) -> Tensor:
    shifted = _shifted(logits)
    total = emit("Log", emit("Sum", emit("Exp", shifted), [-1], keep_dims=True))
    return emit("Sub", shifted, total)  # type: ignore[no-any-return]


@xent_op.decomposition
def _xent_parts(sig: Any, features: Tensor, labels: Tensor) -> list[Tensor]:
    logs = log_softmax_op(features)
    loss = emit("Neg", emit("Sum", emit("Mul", labels, logs), [1]))
    return [loss, emit("Sub", emit("Exp", logs), labels)]


@sparse_xent_op.decomposition
def _sparse_xent_parts(sig: Any, features: Tensor, labels: Tensor) -> list[Tensor]:
    depth = emit("Squeeze", emit("Slice", emit("Shape", features), [1], [1]))
    hit = emit("OneHot", labels, depth, convert_to_tensor(True), convert_to_tensor(False))
    logs = log_softmax_op(features)
    # Chosen, not multiplied: other classes may have no probability at all.
    loss = emit("Neg", emit("Sum", emit("Select", hit, logs, emit("ZerosLike", logs)), [1]))
    return [loss, emit("Sub", emit("Exp", logs), emit("Cast", hit, DstT=features.dtype))]


# ---------------------------------------------------------------- softmax
def _along_axis(op: OpSpec, logits: Any, axis: Any, name: str | None) -> Tensor:
    """Applies an op of the last dimension along `axis`, by swapping the two around it."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        axis = axis if known is None else int(known)
    if isinstance(axis, Tensor) or rank is None:
        if not isinstance(axis, Tensor) and axis == -1:
            return op(logits, name=name)  # type: ignore[no-any-return]
        order: Any = _dynamic_swap(logits, axis)
    else:
        if axis in (-1, rank - 1):
            return op(logits, name=name)  # type: ignore[no-any-return]
        if not -rank <= axis < rank:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Dimension ({axis}) must be in the range [{-rank}, {rank}) where {rank} is the "
                "number of dimensions in the input.",
            )
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
    result = op(emit("Transpose", logits, order, name="transpose"))
    result = emit("Transpose", result, order, name=name or "transpose")
    result.set_shape(logits.get_shape())
    return result  # type: ignore[no-any-return]


def _dynamic_swap(logits: Tensor, axis: Any) -> Tensor:
    """The permutation that swaps dimension `axis` with the last one."""
    rank = emit("Rank", logits)
    axis = emit("Cast", axis, DstT=dtypes.int32)
    # One out of range is none of the dimensions: what comes out is no permutation then.
    from_end = emit("Select", emit("Less", axis, emit("Neg", rank)), rank, axis + rank)
    axis = emit("Select", emit("Less", axis, 0), from_end, axis)
    last = emit("Sub", rank, 1)
    order = emit("Range", 0, rank, 1)
    at_axis = emit("Cast", emit("Equal", order, axis), DstT=dtypes.int32)
    at_last = emit("Cast", emit("Equal", order, last), DstT=dtypes.int32)
    # Both corrections cancel when the axis is the last one.
    return emit("AddV2", order, emit("Mul", at_axis - at_last, last - axis))  # type: ignore[no-any-return]


_WORDS = {
    "logits": "a floating-point tensor of rank 1 or more.",
    "axis": "the dimension, the last one by default.",
    "name": "a name for the operation.",
    "dim": "the deprecated name of `axis`.",
    "returns": "The losses: the shape of `logits` without the class dimension.",
    "raises": "InvalidArgumentError: `axis` is out of range.",
    "_sentinel": "forces `labels` and `logits` to be named.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, returns="A tensor like `logits` whose entries along `axis` sum to 1.")
def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`exp(logits) / sum(exp(logits))` along one dimension."""
    axis = renamed("axis", axis, "dim", dim)
    return _along_axis(softmax_op, logits, -1 if axis is None else axis, name)


@extensible
@explained(_WORDS, returns="A tensor like `logits`.")
def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`logits - log(sum(exp(logits)))` along one dimension."""
    axis = renamed("axis", axis, "dim", dim)
    return _along_axis(log_softmax_op, logits, -1 if axis is None else axis, name)


# ---------------------------------------------------------------- cross entropy
def _flatten_outer(tensor: Tensor) -> Tensor:
    """`tensor` as a matrix whose rows are its last dimension."""
    static = tensor.raw_shape
    if static is not None and static[-1] is not None:
        flat = emit("Reshape", tensor, [-1, static[-1]])
    else:
        last = emit("Slice", emit("Shape", tensor), [_rank(tensor, 1)], [1])
        flat = emit("Reshape", tensor, emit("ConcatV2", [[-1], last], 0))
    if static is not None and None not in static[:-1]:
        flat.set_shape((shapes.num_elements(static[:-1]), static[-1]))
    return flat  # type: ignore[no-any-return]


def _rank(tensor: Tensor, minus: int) -> Any:
    static = tensor.raw_shape
    return len(static) - minus if static is not None else emit("Sub", emit("Rank", tensor), minus)


def _to_end(tensor: Tensor, axis: int) -> Tensor:
    rank = tensor.shape.ndims
    if rank is not None:
        axis %= rank
        order: Any = [d for d in range(rank) if d != axis] + [axis]
    else:
        dims = emit("Range", 0, emit("Rank", tensor), 1)
        at = emit("FloorMod", axis, emit("Rank", tensor))
        order = emit("ConcatV2", [emit("ListDiff", dims, [at])[0], [at]], 0)
    return emit("Transpose", tensor, order)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    labels="a tensor like `logits`: a probability distribution along `axis`.",
    logits="a floating-point tensor of unscaled log probabilities.",
    axis="the class dimension, the last one by default.",
    raises="",
)
def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None,
    dim: int | None = None,
) -> Tensor:  # fmt: skip
    """Cross entropy between `labels` and the softmax of `logits`; gradients flow to both."""
    axis = renamed("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        half = logits.dtype in HALF_TYPES
        precise = emit("Cast", logits, DstT=dtypes.float32) if half else logits
        if labels.dtype.base_dtype is not precise.dtype.base_dtype:
            labels = emit("Cast", labels, DstT=precise.dtype)
        static = logits.raw_shape
        if axis != -1 and (static is None or axis != len(static) - 1):
            precise, labels = _to_end(precise, axis), _to_end(labels, axis)
        outer = emit("Slice", emit("Shape", precise), [0], emit("Pack", [_rank(precise, 1)]))
        losses, _ = xent_op(_flatten_outer(precise), _flatten_outer(labels), name=scope)
        result = emit("Reshape", losses, outer)
        if static is not None:
            dims = list(static)
            del dims[axis]
            result.set_shape(dims)
        return emit("Cast", result, DstT=logits.dtype) if half else result  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    labels="a tensor like `logits`: a probability distribution along `dim`.",
    logits="a floating-point tensor of unscaled log probabilities.",
    dim="the class dimension.",
    axis="an alias of `dim`.",
    raises="ValueError: an argument is missing or not named.",
)
def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1,
    name: str | None = None, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """Cross entropy between `labels` and the softmax of `logits`; no gradient flows to `labels`."""
    dim = dim if axis is None else axis
    ensure_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = emit("StopGradient", labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, axis=dim, name=scope)


@extensible
@explained(
    _WORDS,
    labels="int32 or int64 class ids, of rank one less than `logits`.",
    logits="a floating-point tensor of unscaled log probabilities, classes last.",
    returns="The losses, shaped like `labels` and of the type of `logits`.",
    raises="ValueError: `logits` is a scalar, the ranks or shapes do not fit, or an argument is "
    "missing or not named.",
)
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross entropy between class ids and the softmax of `logits`."""
    ensure_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        half = logits.dtype in HALF_TYPES
        precise = emit("Cast", logits, DstT=dtypes.float32) if half else logits
        checked = _check_sparse(labels, logits)
        if logits.shape.ndims == 2:
            losses, _ = sparse_xent_op(precise, labels, name=name)
            return emit("Cast", losses, DstT=logits.dtype) if half else losses  # type: ignore[no-any-return]
        with control_dependencies([] if checked else [_assert_same_outer(labels, logits)]):
            label_shape = emit("Shape", labels)
            losses, _ = sparse_xent_op(
                _flatten_outer(precise), emit("Reshape", labels, [-1]), name=name
            )
            losses = emit("Reshape", losses, label_shape)
            losses.set_shape(labels.get_shape())
            return emit("Cast", losses, DstT=logits.dtype) if half else losses  # type: ignore[no-any-return]


def _check_sparse(labels: Tensor, logits: Tensor) -> bool:
    """Checks static shapes; whether they were known well enough to need no check at run time."""
    label_dims, dims = labels.raw_shape, logits.raw_shape
    if dims is not None and len(dims) == 0:
        raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
    if dims is not None and label_dims is not None and len(label_dims) != len(dims) - 1:
        raise ValueError(
            f"Rank mismatch: Rank of labels (received {len(label_dims)}) should equal rank of "
            f"logits minus 1 (received {len(dims)}): labels {labels.name} have shape "
            f"{labels.shape}, logits {logits.name} have shape {logits.shape}."
        )
    known = shapes.is_fully_defined(label_dims) and shapes.is_fully_defined(
        None if dims is None else dims[:-1]
    )
    if known and dims is not None and label_dims != dims[:-1]:
        raise ValueError(
            f"Shape mismatch: The shape of labels (received {labels.shape}) should equal the shape "
            f"of logits except for the last dimension (received {logits.shape})."
        )
    return known


def _assert_same_outer(labels: Tensor, logits: Tensor) -> Operation:
    outer = emit("Slice", emit("Shape", logits), [0], emit("Pack", [_rank(logits, 1)]))
    found = emit("Shape", labels)
    what = f"labels {labels.name} must be shaped like logits {logits.name} without the classes."
    data = [what, "labels.shape=", found, "expected=", outer]
    return emit("Assert", emit("All", emit("Equal", found, outer), [0]), data)  # type: ignore[no-any-return]
