"""The kernels of a device: JAX's own functions first, then core's over `jax.numpy`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from opdock.plugin import (
    CLUSTER,
    FLOATS,
    REALS,
    Kernel,
    KernelTable,
    NodeSig,
    codegen,
    dtypes,
    mount,
    tracing,
    windows,
)  # fmt: skip
from opdock_jax.device import HELD, JaxDevice
from opdock_jax.namespace import namespace

table = KernelTable()
Run = Callable[..., Any]
WIDE = {dtypes.float32, dtypes.float64}


class Convolution:
    """A node's convolution in its own data format; 16-bit floats are computed in 32."""

    def __init__(self, sig: NodeSig) -> None:
        self.layout = windows.Layout(sig.attrs)
        self.depthwise = sig.op.startswith("Depthwise")
        space = "DHW"[-len(self.layout.space) :]
        data = f"NC{space}" if self.layout.first else f"N{space}C"
        self.names = (data, f"{space}IO", data)

    def __call__(self, x: Any, kernel: Any, where: windows.Window) -> Any:
        """The convolution of arrays, or of what stands for one in a transposition."""
        groups = x.shape[self.layout.channel] // max(1, kernel.shape[-2])
        if self.depthwise:
            groups = kernel.shape[-2]
            kernel = kernel.reshape(*kernel.shape[:-2], 1, -1)
        return lax.conv_general_dilated(
            x, kernel, where.strides, where.pads, rhs_dilation=where.dilations,
            dimension_numbers=self.names, feature_group_count=max(1, groups),
        )  # fmt: skip

    def window(self, shape: Any, taps: Any) -> windows.Window:
        """The filter's positions on an input."""
        _, space, channels = self.layout.parts(shape)
        if self.depthwise:
            windows.check_depth(channels, taps[-2])
        else:
            windows.groups(channels, taps[-2], taps[-1])
        return self.layout.window(space, taps[:-2])

    def result(self, shape: Any, taps: Any, where: windows.Window) -> tuple[Any, ...]:
        """The shape of the convolution."""
        outputs = taps[-1] * (taps[-2] if self.depthwise else 1)
        return self.layout.shape(shape[0], where.out, outputs)


def wide(x: Any) -> Any:
    """16-bit floats as float32."""
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


def transposed(linear: Run, shape: Any, out: Any) -> Any:
    """The transpose of a linear function of an array of a shape, at the result `out`."""
    (back,) = jax.linear_transpose(linear, jax.ShapeDtypeStruct(tuple(shape), out.dtype))(out)
    return back


@table.binder("Conv2D", "Conv3D", "DepthwiseConv2dNative", T=FLOATS)
def conv(sig: NodeSig) -> Run:
    """Convolution of images or volumes."""
    node = Convolution(sig)

    def run(x: Any, kernel: Any) -> Any:
        return node(wide(x), wide(kernel), node.window(x.shape, kernel.shape)).astype(x.dtype)

    return run


@table.binder("Conv2DBackpropInput", "Conv3DBackpropInputV2",
              "DepthwiseConv2dNativeBackpropInput", T=FLOATS,
              host_inputs="input_sizes")  # fmt: skip
def conv_backprop_input(sig: NodeSig) -> Run:
    """The gradient with respect to the input."""
    node = Convolution(sig)

    def run(input_sizes: Any, kernel: Any, grad: Any) -> Any:
        shape = tuple(map(int, input_sizes))
        where = node.window(shape, kernel.shape)
        windows.check_shape("out_backprop", grad.shape, node.result(shape, kernel.shape, where))
        filters = wide(kernel)
        return transposed(lambda x: node(x, filters, where), shape, wide(grad)).astype(grad.dtype)

    return run


@table.binder("Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
              "DepthwiseConv2dNativeBackpropFilter", T=FLOATS,
              host_inputs="filter_sizes")  # fmt: skip
def conv_backprop_filter(sig: NodeSig) -> Run:
    """The gradient with respect to the filter."""
    node = Convolution(sig)

    def run(x: Any, filter_sizes: Any, grad: Any) -> Any:
        taps = tuple(map(int, filter_sizes))
        where = node.window(x.shape, taps)
        windows.check_shape("out_backprop", grad.shape, node.result(x.shape, taps, where))
        data = wide(x)
        return transposed(lambda w: node(data, w, where), taps, wide(grad)).astype(grad.dtype)

    return run


def pooled(sig: NodeSig, shape: Any, fold: Run) -> Run:
    """The sum or the maximum of each of a node's windows, for arrays of a shape."""
    layout = windows.Pool(sig.attrs)
    where = layout.on(shape)

    def every(values: Any, other: Any) -> tuple[Any, ...]:
        known = dict(zip(layout.pooled, values, strict=True))
        return tuple(known.get(axis, other) for axis in range(len(shape)))

    size, steps, pads = every(where.window, 1), every(where.strides, 1), every(where.pads, (0, 0))
    start = lowest if fold is lax.max else functools.partial(np.zeros, ())
    return lambda x: lax.reduce_window(x, start(x.dtype), fold, size, steps, pads)


def lowest(dtype: Any) -> Any:
    """What no maximum takes unless there is nothing else."""
    return np.array(-np.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).min, dtype)


def shares(sig: NodeSig, shape: Any, dtype: Any) -> tuple[Run, Any]:
    """The sum of each window, and how many elements that are not padding it has."""
    total = pooled(sig, shape, lax.add)
    return total, total(jnp.ones(shape, dtype))


@table.binder("MaxPool", "MaxPool3D", T=REALS, when=windows.plain_format)
def max_pool(sig: NodeSig) -> Run:
    """The maximum of each window."""
    return lambda x: pooled(sig, x.shape, lax.max)(x)


@table.binder("AvgPool", "AvgPool3D", T=FLOATS)
def avg_pool(sig: NodeSig) -> Run:
    """The mean of what each window has of the input."""

    def run(x: Any) -> Any:
        data = wide(x)
        total, count = shares(sig, x.shape, data.dtype)
        return (total(data) / count).astype(x.dtype)

    return run


@table.binder("MaxPoolGrad", T=FLOATS)
def max_pool_grad(sig: NodeSig) -> Run:
    """Each gradient at the first maximum of its window."""

    def run(x: Any, best: Any, grad: Any) -> Any:
        windows.check_shape("orig_output", best.shape, windows.Pool(sig.attrs).result(x.shape))
        windows.check_shape("grad", grad.shape, best.shape)
        _, back = jax.vjp(pooled(sig, x.shape, lax.max), wide(x))
        return back(wide(grad))[0].astype(grad.dtype)

    return run


@table.binder("AvgPoolGrad", "AvgPool3DGrad", T=FLOATS, host_inputs="orig_input_shape")
def avg_pool_grad(sig: NodeSig) -> Run:
    """Each gradient shared out over its window."""

    def run(orig_input_shape: Any, grad: Any) -> Any:
        shape = tuple(map(int, orig_input_shape))
        windows.check_shape("grad", grad.shape, windows.Pool(sig.attrs).result(shape))
        back = wide(grad)
        total, count = shares(sig, shape, back.dtype)
        return transposed(total, shape, back / count).astype(grad.dtype)

    return run


# Core's versions iterate until all elements are exact enough, which cannot be traced.
SPECIAL: dict[str, Run] = {
    "Igamma": jax.scipy.special.gammainc,
    "Igammac": jax.scipy.special.gammaincc,
    "IgammaGradA": lambda a, x: lax.igamma_grad_a(*jnp.broadcast_arrays(a, x)),
    "Zeta": jax.scipy.special.zeta,
    "Polygamma": lambda n, x: lax.polygamma(*jnp.broadcast_arrays(n, x)),
    "Betainc": jax.scipy.special.betainc,
    "MatrixExponential": jax.scipy.linalg.expm,
}


@table.binder(*SPECIAL, T=WIDE)
@table.binder("MatrixExponential", T=dtypes.COMPLEX)
def special(sig: NodeSig) -> Run:
    """Incomplete gamma and beta functions, zeta and its relatives; matrices' exponentials."""
    return SPECIAL[sig.op]


_LOOPS = frozenset({"igamma", "igammac", "igamma_grad_a", "zeta", "polygamma", "betainc"})


def traceable(sig: NodeSig) -> bool | str:
    """Whether the functions of a cluster can be traced."""
    found = sorted(sig.attrs["line"].functions & _LOOPS)
    return not found or f"{found[0]} is a loop whose end depends on values"


@table.binder(CLUSTER, when=traceable)
def cluster(sig: NodeSig) -> Run:
    """Many elementwise ops as one function that XLA compiles."""
    return codegen.evaluate_cluster(namespace, sig)


def table_for(device: JaxDevice) -> KernelTable:
    """All kernels, each computing on the device and with 64 bits."""
    return KernelTable(_placed(kernel, device) for kernel in (*table, *mount(namespace, HELD)))


def _placed(kernel: Kernel, device: JaxDevice) -> Kernel:
    bind = kernel.bind
    assert bind is not None

    @functools.wraps(getattr(bind, "func", bind))  # core's, behind a partial of the namespace
    def bound(sig: NodeSig) -> Run:
        with device.computing():
            run = call = bind(sig)
            # Where a stream of random numbers stands is a matter of each call, and what the host
            # gets is nothing that a program gives.
            if "seed2" not in sig.attrs and not kernel.host_outputs:
                traced = tracing.inputs_traced(kernel, sig)
                run = tracing.TracedKernel(namespace, call, jax.jit, jax.Array, traced)

        def placed(*inputs: Any) -> Any:
            with device.computing():
                return apart(kernel, run(*inputs), inputs)

        return placed

    return dataclasses.replace(kernel, bind=bound)


def apart(kernel: Kernel, out: Any, inputs: Any) -> Any:
    """Results in memory of their own, but for those that may be an input's."""
    if not isinstance(out, tuple | list):
        return _apart(kernel, 0, out, inputs)
    return tuple(_apart(kernel, i, x, inputs) for i, x in enumerate(out))


def _apart(kernel: Kernel, i: int, out: Any, inputs: Any) -> Any:
    if i not in kernel.may_alias and isinstance(out, jax.Array) and any(out is x for x in inputs):
        return jnp.array(out, copy=True)
    return out
