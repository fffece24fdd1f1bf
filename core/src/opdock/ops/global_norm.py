"""Batch normalization as graphs from before TensorFlow 1 have it, as one op and its gradient."""

from __future__ import annotations

from typing import Any, Final

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.shapes import Shape

__all__: list[str] = []

_ATTRS: Final = "T: numbertype, variance_epsilon: float, scale_after_normalization: bool"

norm_op = define_op(
    "BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T -> result: T", _ATTRS
)
norm_grad_op = define_op(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T", _ATTRS,
).not_differentiable()  # fmt: skip


def _channels(sig: ShapeSig, vectors: list[Shape]) -> tuple[Shape, Shape]:
    """The images' shape and that of the statistics, which have one entry a channel."""
    images, vector = shapes.with_rank(sig.shapes[0], 4), (sig.shapes[0] or (None,))[-1:]
    for given in vectors:
        vector = shapes.with_rank(shapes.merge(shapes.with_rank(given, 1), vector), 1)
    return (*images[:3], *vector), vector


@norm_op.shape
def _norm_shape(sig: ShapeSig) -> Shape:
    return _channels(sig, sig.shapes[1:])[0]


@norm_grad_op.shape
def _norm_grad_shape(sig: ShapeSig) -> list[Shape]:
    images, vector = _channels(sig, sig.shapes[1:4])
    return [shapes.merge(images, sig.shapes[4]), *[vector] * 4]


@norm_op.gradient
def _norm_gradient(op: Operation, grad: Tensor) -> list[Any]:
    t, m, v, _, gamma = op.inputs
    flags = {n: op.attrs[n] for n in ("variance_epsilon", "scale_after_normalization")}
    return list(norm_grad_op(t, m, v, gamma, grad, **flags))


def _inverse(sig: ShapeSig, v: Tensor) -> Any:
    """One over the standard deviation."""
    epsilon = get("Cast")(sig.attrs["variance_epsilon"], DstT=sig.attrs["T"])
    return get("Rsqrt")(v + epsilon)


@norm_op.decomposition
def _norm_parts(sig: ShapeSig, t: Tensor, m: Tensor, v: Tensor, beta: Tensor, gamma: Tensor) -> Any:
    inverse = _inverse(sig, v)
    if sig.attrs["scale_after_normalization"]:
        inverse = inverse * gamma
    return (t - m) * inverse + beta


@norm_grad_op.decomposition
def _norm_grad_parts(
    sig: ShapeSig, t: Tensor, m: Tensor, v: Tensor, gamma: Tensor, backprop: Tensor
) -> Any:
    inverse = _inverse(sig, v)
    total = get("Sum")(backprop, [0, 1, 2])
    along = get("Sum")(backprop * (t - m), [0, 1, 2])
    scaled = sig.attrs["scale_after_normalization"]
    factor = inverse * gamma if scaled else inverse
    by_gamma = along * inverse if scaled else get("ZerosLike")(gamma)
    half = get("Cast")(-0.5, DstT=sig.attrs["T"])
    by_variance = along * half * factor * (inverse * inverse)
    return backprop * factor, -(total * factor), by_variance, total, by_gamma
