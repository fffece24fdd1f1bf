"""Convolution, pooling and batch normalization by PyTorch's own kernels."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from opdock.plugin import FLOATS, Kernel, KernelTable, NodeSig, mount, windows

table = KernelTable()
aten: Any = torch.ops.aten
Run = Callable[..., Any]


class Images:
    """A node's images or volumes with channels first, as PyTorch takes them."""

    def __init__(self, sig: NodeSig) -> None:
        self.layout = windows.Layout(sig.attrs)
        self.depthwise = sig.op.startswith("Depthwise")
        self.size = self.layout.spatial(sig.attrs["ksize"]) if "ksize" in sig.attrs else ()
        self.zeros = [0] * len(self.layout.space)

    def enter(self, x: torch.Tensor) -> torch.Tensor:
        """Channels first; 16-bit floats as float32 on the CPU, which has few kernels for them."""
        x = x if self.layout.first else x.movedim(-1, 1)
        return x.float() if x.itemsize == 2 and x.device.type == "cpu" else x

    def leave(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """In the node's data format and the type of `like`."""
        return (x if self.layout.first else x.movedim(1, -1)).to(like.dtype)

    def shape(self, sizes: Any) -> tuple[int, ...]:
        """A shape vector with channels first."""
        return (int(sizes[0]), int(sizes[self.layout.channel]), *self.layout.spatial(sizes))

    def pad(self, x: torch.Tensor, where: windows.Window, value: float = 0) -> torch.Tensor:
        """With padding around the spatial dimensions."""
        pads = [n for pair in reversed(where.pads) for n in pair]
        return F.pad(x, pads, value=value) if any(pads) else x

    def crop(self, x: torch.Tensor, where: windows.Window) -> torch.Tensor:
        """Without the padding."""
        return x[(slice(None), slice(None), *where.inner)]

    def filters(self, kernel: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """TF's [*window, in, out] as [out, in, *window], in the type of `like`."""
        if self.depthwise:
            return kernel.permute(2, 3, 0, 1).reshape(-1, 1, *kernel.shape[:2]).to(like.dtype)
        return kernel.movedim((-1, -2), (0, 1)).to(like.dtype)

    def convolve(self, x: Any, filters: Any, where: Any, grad: Any = None, of: int = 0) -> Any:
        """The convolution, or given its gradient that of `x` (0) or of `filters` (1)."""
        if grad is not None:
            out = (x.shape[0], filters.shape[0], *where.out)
            windows.check_shape("out_backprop, channels first,", tuple(grad.shape), out)
        groups = max(1, x.shape[1] // max(1, filters.shape[1]))
        steps = (None, where.strides, self.zeros, where.dilations, False, self.zeros, groups)
        # cuDNN would shorten float32 without being asked.
        whole = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        with whole if x.is_cuda else contextlib.nullcontext():
            if grad is None:
                return torch.convolution(x, filters, *steps)
            wanted = [of == 0, of == 1, False]
            return aten.convolution_backward(grad, x, filters, *steps, wanted)[of]


@table.binder("Conv2D", "Conv3D", "DepthwiseConv2dNative", T=FLOATS)
def conv(sig: NodeSig) -> Run:
    """Convolution of images or volumes."""
    images = Images(sig)

    def run(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        data = images.enter(x)
        where = images.layout.window(tuple(data.shape[2:]), tuple(kernel.shape[:-2]))
        out = images.convolve(images.pad(data, where), images.filters(kernel, data), where)
        return images.leave(out, x)

    return run


@table.binder("Conv2DBackpropInput", "Conv3DBackpropInputV2",
              "DepthwiseConv2dNativeBackpropInput", T=FLOATS,
              host_inputs="input_sizes")  # fmt: skip
def conv_backprop_input(sig: NodeSig) -> Run:
    """The gradient with respect to the input."""
    images = Images(sig)

    def run(input_sizes: Any, kernel: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        back, shape = images.enter(grad), images.shape(input_sizes)
        where = images.layout.window(shape[2:], tuple(kernel.shape[:-2]))
        x = back.new_empty((*shape[:2], *where.padded))
        out = images.convolve(x, images.filters(kernel, back), where, back)
        return images.leave(images.crop(out, where), grad)

    return run


@table.binder("Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
              "DepthwiseConv2dNativeBackpropFilter", T=FLOATS,
              host_inputs="filter_sizes")  # fmt: skip
def conv_backprop_filter(sig: NodeSig) -> Run:
    """The gradient with respect to the filter."""
    images = Images(sig)

    def run(x: torch.Tensor, filter_sizes: Any, grad: torch.Tensor) -> torch.Tensor:
        data, back, shape = images.enter(x), images.enter(grad), tuple(map(int, filter_sizes))
        where = images.layout.window(tuple(data.shape[2:]), shape[:-2])
        filters = images.filters(data.new_empty(shape), data)
        out = images.convolve(images.pad(data, where), filters, where, back, of=1)
        if images.depthwise:
            return out.reshape(*shape[2:], *shape[:2]).permute(2, 3, 0, 1).to(x.dtype)
        return out.movedim((0, 1), (-1, -2)).to(x.dtype)

    return run


def spatial_only(sig: NodeSig) -> bool | str:
    """Whether neither the batch nor the channels are pooled."""
    across = (0, windows.Layout(sig.attrs).channel)
    plain = all(sig.attrs[name][i] == 1 for name in ("ksize", "strides") for i in across)
    return plain or "it pools over batch entries or channels"


@table.binder("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D", T=FLOATS, when=spatial_only)
def pool(sig: NodeSig) -> Run:
    """The maximum of each window, or the mean of what it has of the input."""
    images, largest = Images(sig), sig.op.startswith("Max")
    maximum = F.max_pool2d if len(images.zeros) == 2 else F.max_pool3d

    def run(x: torch.Tensor) -> torch.Tensor:
        data = images.enter(x)
        where = images.layout.window(tuple(data.shape[2:]), images.size)
        padded = images.pad(data, where, -math.inf if largest else 0)
        if largest:
            return images.leave(maximum(padded, where.window, where.strides), x)
        return images.leave(total(padded, where) / counts(images, data, where), x)

    return run


@table.binder("MaxPoolGrad", T=FLOATS, when=spatial_only)
def max_pool_grad(sig: NodeSig) -> Run:
    """Each gradient at the first maximum of its window."""
    images = Images(sig)

    def run(x: torch.Tensor, best: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        data, back = images.enter(x), images.enter(grad)
        where = images.layout.window(tuple(data.shape[2:]), images.size)
        padded, steps = images.pad(data, where, -math.inf), (where.window, where.strides)
        _, place = F.max_pool2d(padded, *steps, return_indices=True)
        rest = ([0, 0], [1, 1], False, place)
        out = aten.max_pool2d_with_indices_backward(back, padded, *steps, *rest)
        return images.leave(images.crop(out, where), x)

    return run


def total(padded: torch.Tensor, where: windows.Window) -> torch.Tensor:
    """The sum of each window."""
    average = F.avg_pool2d if len(where.size) == 2 else F.avg_pool3d
    return average(padded, where.window, where.strides, divisor_override=1)


def counts(images: Images, like: torch.Tensor, where: windows.Window) -> torch.Tensor:
    """How many elements of each window are not padding."""
    return total(images.pad(like.new_ones((1, 1, *where.size)), where), where)


@table.binder("AvgPoolGrad", "AvgPool3DGrad", T=FLOATS, when=spatial_only,
              host_inputs="orig_input_shape")  # fmt: skip
def avg_pool_grad(sig: NodeSig) -> Run:
    """Each gradient shared out over its window."""
    images = Images(sig)
    spread = aten.avg_pool2d_backward if len(images.zeros) == 2 else aten.avg_pool3d_backward

    def run(orig_input_shape: Any, grad: torch.Tensor) -> torch.Tensor:
        back, shape = images.enter(grad), images.shape(orig_input_shape)
        where = images.layout.window(shape[2:], images.size)
        padded = back.new_empty((*shape[:2], *where.padded))
        rest = (where.window, where.strides, images.zeros, False, True, 1)
        out = spread(back / counts(images, back, where), padded, *rest)
        return images.leave(images.crop(out, where), grad)

    return run


def with_empties(kernel: Kernel) -> Kernel:
    """The kernel with core's portable one for arrays without elements, which PyTorch refuses."""
    own: Any = kernel.bind

    def bind(sig: NodeSig) -> Run:
        run, device = own(sig), sig.device
        assert device is not None

        @functools.cache
        def spare() -> Any:
            portable = (k.bind for k in mount(device.namespace) if k.op == kernel.op)
            return next(filter(None, portable))(sig)

        def call(*inputs: Any) -> Any:
            full = all(x.numel() for x in inputs if isinstance(x, torch.Tensor))
            return (run if full else spare())(*inputs)

        return call

    return dataclasses.replace(kernel, bind=bind)


table = KernelTable([with_empties(kernel) for kernel in table])


NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


@table.binder(*NORMS, T=FLOATS)
def batch_norm(sig: NodeSig) -> Run:
    """Normalizes by the batch's statistics or by given ones."""
    channel, epsilon = 1 if sig.attrs["data_format"] == "NCHW" else -1, sig.attrs["epsilon"]
    training, factor = sig.attrs["is_training"], sig.attrs.get("exponential_avg_factor", 1.0)

    def run(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        data, used = x.float().movedim(channel, 1), (mean, variance)
        if training:
            # Of nothing TF's statistics are NaN, of which PyTorch would warn.
            used = (scale * torch.nan,) * 2
            if data.numel():
                used = torch.var_mean(data, (0, 2, 3), correction=0)[::-1]
        y = torch.batch_norm(data, scale, offset, *used, False, 0.0, epsilon, True)
        new_mean, new_variance = (m.clone() for m in used)
        if training:
            count = data.numel() // max(1, data.shape[1])
            new_variance *= count / max(1, count - 1)
            if factor != 1:
                new_mean = torch.lerp(mean, new_mean, factor)
                new_variance = torch.lerp(variance, new_variance, factor)
        kept = (m.clone() for m in used)
        out = (y.movedim(1, channel).to(x.dtype), new_mean, new_variance, *kept)
        return (*out, scale.new_zeros(())) if sig.op == "FusedBatchNormV3" else out

    return run


@table.binder(*(name.replace("Norm", "NormGrad") for name in NORMS), T=FLOATS)
def batch_norm_grad(sig: NodeSig) -> Run:
    """Gradients with respect to x, scale and offset."""
    channel, epsilon = 1 if sig.attrs["data_format"] == "NCHW" else -1, sig.attrs["epsilon"]

    def run(grad: Any, x: Any, scale: Any, mean: Any, variance: Any, *unused: Any) -> Any:
        none = scale.new_zeros((0,))
        if not x.numel():  # PyTorch reads what is not there.
            return torch.zeros_like(x), torch.zeros_like(scale), torch.zeros_like(scale), none, none
        back, data = (t.float().movedim(channel, 1) for t in (grad, x))
        known = (mean, variance, mean, torch.rsqrt(variance + epsilon))
        rest = (sig.attrs["is_training"], epsilon, [True, True, True])
        dx, dscale, doffset = aten.native_batch_norm_backward(back, data, scale, *known, *rest)
        return dx.movedim(1, channel).to(x.dtype), dscale, doffset, none, none

    return run
