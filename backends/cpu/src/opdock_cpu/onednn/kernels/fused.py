"""Kernels of the fused ops: a product, what is added to it, and an activation, in one pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors, windows
from opdock_cpu.onednn import conv as primitives
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.epilogue import Epilogue
from opdock_cpu.onednn.fusions import FUSED_CONV, FUSED_MATMUL, op_name
from opdock_cpu.onednn.kernels.common import (
    PRIORITY,
    Array,
    PerShape,
    declined_at_once,
    known,
    result,
    size,
    threads_for,
)
from opdock_cpu.onednn.kernels.conv import shape_of
from opdock_cpu.onednn.kernels.linalg import blas_product, blas_serves, multiply, packing_pays
from opdock_cpu.onednn.matmul import Factors, matrices, multiplied
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.packing import Call, Kept
from opdock_cpu.onednn.stays import kept_of

__all__ = ["table"]

table = KernelTable()

_F32: Final = np.dtype(np.float32)


def _when(sig: NodeSig) -> bool | str:
    floats = (i for i, t in enumerate(sig.in_dtypes) if t == dtypes.float32)
    return declined_at_once(sig, *floats) or True


def _stays(sig: NodeSig, member: str, index: int) -> bool:
    """Whether an input of a member is a constant or the value of a variable."""
    return index in kept_of(sig.attrs[member]) or sig.const(index) is not None


def _as_it_is(weights: Array) -> Array:
    return weights


def _decline(text: str) -> errors.UnimplementedError:
    return errors.UnimplementedError(None, None, text)


class _FusedConv:
    """A convolution with an epilogue, for the shapes of one call."""

    def __init__(
        self, sig: NodeSig, depthwise: bool, norm: bool, residual: bool, activation: str,
        x: Array, kernel: Array,
    ) -> None:  # fmt: skip
        layout = windows.Layout(sig.attrs["conv"])
        shape = shape_of(layout, sig.out_dtypes[0], x.shape, kernel.shape, depthwise)
        self.shape: ConvShape = shape
        self.target = layout.shape(shape.batch, shape.where.out, shape.outputs)
        if not size(self.target) or not x.size or not kernel.size:
            raise _decline("an array is empty")
        vector = dense((1, shape.outputs, *[1] * len(shape.where.out))) if norm else None
        self.epilogue = Epilogue(activation, vector, shape.dst() if residual else None)
        weights = shape.depthwise_weights() if depthwise else shape.weights()
        self.call: Call = primitives.forward(
            shape, weights, not norm, self.epilogue.post_ops, self.epilogue.extra
        )
        self.packed: Callable[[Array], Array] = _as_it_is
        if _stays(sig, "conv", 1):
            self.packed = Kept(self.call.keep(1))

    def result(self, out: Array | None) -> Array:
        """The buffer to write."""
        return np.empty(self.target, _F32) if out is None else out

    def check(self, vectors: Sequence[Array], residual: Sequence[Array]) -> None:
        """Declines what does not fit: pointers are about to be handed on."""
        channels, target = (self.shape.outputs,), self.target
        if any(v.shape != channels for v in vectors) or any(r.shape != target for r in residual):
            shapes = [list(a.shape) for a in (*vectors, *residual)]
            raise _decline(f"operands {shapes} do not fit the result {list(target)}")


def _conv_bias(
    sig: NodeSig, depthwise: bool, residual: bool, activation: str
) -> Callable[..., Array]:
    def make(x: Array, kernel: Array) -> Callable[..., Array]:
        fused = _FusedConv(sig, depthwise, False, residual, activation, x, kernel)
        packed, run, finish = fused.packed, fused.call.bind(), fused.epilogue.finish

        def call(x: Array, kernel: Array, bias: Array, *rest: Any) -> Array:
            *more, out = rest
            fused.check((bias,), more)
            out = fused.result(out)
            run(x, packed(kernel), bias, out, *more)
            return finish(out)

        return call

    return _by_shape(make)


def _conv_norm(
    sig: NodeSig, depthwise: bool, residual: bool, activation: str
) -> Callable[..., Array]:
    """Batch normalization by given statistics is a factor and a summand per channel."""
    epsilon = np.float32(sig.attrs["norm"]["epsilon"])
    kept = set(range(1, 5)) <= set(kept_of(sig.attrs["norm"]))

    def factors(scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        gain = scale / np.sqrt(variance + epsilon)
        return gain, offset - mean * gain

    statistics = Kept(factors) if kept else factors

    def make(x: Array, kernel: Array) -> Callable[..., Array]:
        fused = _FusedConv(sig, depthwise, True, residual, activation, x, kernel)
        packed, run, finish = fused.packed, fused.call.bind(), fused.epilogue.finish

        def call(x: Array, kernel: Array, *rest: Any) -> Array:
            scale, offset, mean, variance, *more, out = rest
            fused.check((scale, offset, mean, variance), more)
            gain, shift = statistics(scale, offset, mean, variance)
            out = fused.result(out)
            run(x, packed(kernel), out, gain, shift, *more)
            return finish(out)

        return call

    return _by_shape(make)


def _by_shape(make: Callable[[Array, Array], Callable[..., Array]]) -> Callable[..., Array]:
    shapes = PerShape(make)

    def run(x: Array, kernel: Array, *rest: Any) -> Array:
        return shapes.find((x.shape, kernel.shape), x, kernel)(x, kernel, *rest)

    return run


for _conv, _kind, _residual, _activation in FUSED_CONV:
    table.binder(
        op_name(_conv, _kind, _residual, _activation), out=True, priority=PRIORITY, when=_when
    )(
        functools.partial(
            _conv_bias if _kind == "Bias" else _conv_norm,
            depthwise=_conv != "Conv2D", residual=_residual, activation=_activation,
        )
    )  # fmt: skip


# ---------------------------------------------------------------- matrix products
def _when_matmul(sig: NodeSig) -> bool | str:
    why = _when(sig)
    if why is not True:
        return why
    if not known(sig):
        return "shapes are not known when the program is prepared"
    if len(sig.in_shapes[0] or ()) != 2 or len(sig.in_shapes[2] or ()) != 1:
        return "it is not a product of matrices with a bias vector"
    return True


def _sigmoid(out: Array) -> None:
    # SciPy has it in one pass, and takes as long to import as tens of thousands of these.
    np.negative(out, out)
    np.exp(out, out)
    np.add(out, np.float32(1), out)
    np.reciprocal(out, out)


_NUMPY: Final[dict[str, Callable[[Array], Any]]] = {
    "": lambda out: out,
    "Relu": lambda out: np.maximum(out, np.float32(0), out=out),
    "Relu6": lambda out: np.clip(out, np.float32(0), np.float32(6), out=out),
    "Elu": lambda out: np.copyto(out, np.expm1(out), where=out < 0),
    "Tanh": lambda out: np.tanh(out, out),
    "Sigmoid": _sigmoid,
}


def _through_blas(product: Callable[..., Array], activation: str) -> Callable[..., Array]:
    """The same for products that are quicker in BLAS."""
    activate = _NUMPY[activation]

    def call(a: Array, b: Array, bias: Array, out: Array | None) -> Array:
        out = product(a, b, out)
        np.add(out, bias, out)
        activate(out)
        return out

    return call


def _matmul_bias(sig: NodeSig, activation: str) -> Callable[..., Array]:
    attrs = sig.attrs["matmul"]
    ta, tb = bool(attrs["transpose_a"]), bool(attrs["transpose_b"])
    epilogue, kept = Epilogue(activation), _stays(sig, "matmul", 1)

    def make(a: Array, b: Array, bias: Array) -> Callable[..., Array]:
        checks.check_matmul(a, b, ta, tb)
        left, right = matrices(a.shape, ta), matrices(b.shape, tb)
        shape = (left.dims[0], right.dims[1])
        macs = size(shape) * left.dims[1]
        if macs == 0 or bias.shape != shape[1:]:
            raise _decline(f"a bias of shape {list(bias.shape)} for a result of {list(shape)}")
        direct, sizes = None, (shape[0], left.dims[1], shape[1])
        if blas_serves(*sizes):
            direct = _through_blas(blas_product(left, right, ta, tb), activation)
            if not kept or not packing_pays(*sizes):
                return direct
        run = multiply(
            left, right, dense(shape), dense((1, shape[1])), epilogue.post_ops, kept, direct
        )

        def call(a: Array, b: Array, bias: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(shape, _F32)
            run(a, b, bias, out)
            return epilogue.finish(out)

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, bias: Array, out: Array | None = None) -> Array:
        return shapes.find((a.shape, b.shape, bias.shape), a, b, bias)(a, b, bias, out)

    return run


for _activation in FUSED_MATMUL:
    table.binder(
        op_name("MatMul", "Bias", _activation), out=True, priority=PRIORITY, when=_when_matmul
    )(functools.partial(_matmul_bias, activation=_activation))


# ---------------------------------------------------------------- gradients
@table.binder(op_name("MatMul", True), out=True, priority=PRIORITY, when=_when, over={0: 2})
def matmul_added(sig: NodeSig) -> Callable[..., Array]:
    """A product that is added to a matrix, where that lies if nobody else reads it."""
    attrs = sig.attrs["matmul"]
    ta, tb = bool(attrs["transpose_a"]), bool(attrs["transpose_b"])

    def make(a: Array, b: Array, total: Array) -> Callable[..., Array]:
        checks.check_matmul(a, b, ta, tb)
        left, right = matrices(a.shape, ta), matrices(b.shape, tb)
        shape, inner = (left.dims[0], right.dims[1]), left.dims[1]
        macs = size(shape) * inner
        if macs == 0 or total.shape != shape:
            raise _decline(f"a sum of {list(total.shape)} and {list(shape)}, of {macs} products")
        if blas_serves(shape[0], inner, shape[1]):
            product = blas_product(left, right, ta, tb)
            return lambda a, b, total, out: np.add(total, product(a, b, None), out)
        accumulate = multiplied(
            Factors(left, right, dense(shape), None, (("sum",),)), threads_for(macs)
        )

        def call(a: Array, b: Array, total: Array, out: Array | None) -> Array:
            if out is not total:
                out = result(out, shape, _F32)
                np.copyto(out, total)
            accumulate(a, b, out)
            return out

        return call

    shapes = PerShape(make)

    def run(a: Array, b: Array, total: Array, out: Array | None = None) -> Array:
        key = (a.shape, b.shape, total.shape)
        return shapes.find(key, a, b, total)(a, b, total, out)

    return run


@table.binder(
    op_name("Conv2DFilterAndBiasGrad"), priority=PRIORITY, when=_when, host_inputs=("sizes",)
)
def filter_and_bias_gradient(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The gradients of a convolution's filter and of the bias that was added to its result."""
    layout = windows.Layout(sig.attrs["conv"])

    def make(x: Array, filter_sizes: Array, grad: Array) -> Callable[..., tuple[Array, Array]]:
        kernel = tuple(filter_sizes.tolist())
        shape = shape_of(layout, sig.out_dtypes[0], x.shape, kernel)
        target = layout.shape(shape.batch, shape.where.out, shape.outputs)
        if grad.shape != target or not x.size or not grad.size or not size(kernel):
            raise _decline(f"a gradient of shape {list(grad.shape)}, expected {list(target)}")
        run = primitives.backward_weights(shape, shape.weights(), bias=True).bind()

        def call(x: Array, sizes: Array, grad: Array) -> tuple[Array, Array]:
            weights, bias = np.empty(kernel, _F32), np.empty(shape.outputs, _F32)
            run(x, grad, weights, bias)
            return weights, bias

        return call

    shapes = PerShape(make)

    def run(x: Array, sizes: Array, grad: Array) -> tuple[Array, Array]:
        key = (x.shape, sizes.tobytes(), sizes.dtype, grad.shape)
        return shapes.find(key, x, sizes, grad)(x, sizes, grad)

    return run
