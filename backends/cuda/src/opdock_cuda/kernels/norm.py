"""The gradients of fused batch normalization by cuDNN, from the statistics that were kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_ckernels.families import norm as shared
from opdock_ckernels.pointwise import formula
from opdock_cuda import dnn

__all__ = ["table"]

table = KernelTable()
_PRIORITY = 20
_FLOAT = frozenset({dtypes.float32})
_CHANNELS_LAST, _CHANNELS_FIRST = (0, 2, 3, 1), (0, 1, 2, 3)


def _when(sig: NodeSig) -> bool | str:
    if sig.attrs.get("data_format", "NHWC") not in ("NHWC", "NCHW"):
        return f"cuDNN normalizes images, not {sig.attrs['data_format']}"
    if not sig.attrs["is_training"]:
        return "with given statistics the gradient is elementwise"
    return dnn.missing() or True


@table.binder(
    "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", T=_FLOAT, when=_when,
    priority=_PRIORITY,
)  # fmt: skip
def batch_norm_grad(sig: NodeSig) -> Callable[..., Any]:
    """The gradients with respect to the input, the scale and the offset."""
    device, epsilon = sig.device, float(sig.attrs["epsilon"])
    first = sig.attrs.get("data_format") == "NCHW"
    order = _CHANNELS_FIRST if first else _CHANNELS_LAST
    inverse = formula(device, "1 / sqrt(v + e)", {"v": dtypes.float32}, dtypes.float32, e=epsilon)
    own = next(k for k in shared.table if k.op == sig.op and k.bind is not None).bind
    assert own is not None
    plain = own(sig)

    def run(grad: Any, x: Any, scale: Any, mean: Any, variance: Any, *unused: Any) -> Any:
        n, a, b, c = x.shape
        dims, each = ([n, a, b, c] if first else [n, c, a, b]), [1, a if first else c, 1, 1]

        def build(cudnn: Any, graph: Any) -> dict[str, Any]:
            def tensor(name: str, size: list[int]) -> Any:
                return graph.tensor(name=name, dim=size, stride=dnn.strides_of(size, order))

            found = {name: tensor(name, dims) for name in ("dy", "x")}
            found |= {name: tensor(name, each) for name in ("scale", "mean", "inverse")}
            results = graph.batchnorm_backward(
                grad=found["dy"], input=found["x"], scale=found["scale"], mean=found["mean"],
                inv_variance=found["inverse"],
            )  # fmt: skip
            sizes = (dims, each, each)
            for name, size, result in zip(("dx", "ds", "do"), sizes, results, strict=True):
                result.set_output(True).set_dim(size).set_stride(dnn.strides_of(size, order))
                found[name] = result
            return found

        fits = 0 not in x.shape and grad.shape == x.shape
        key = ("norm_grad", first, tuple(dims))
        graph = device.dnn.graph(key, dtypes.float32, build) if fits else None
        if graph is None:
            return plain(grad, x, scale, mean, variance, *unused)
        dx = device.allocate(x.shape, x.dtype)
        dscale, doffset = (device.allocate(scale.shape, scale.dtype) for _ in range(2))
        graph.run(
            dy=grad, x=x, scale=scale, mean=mean, inverse=inverse(variance), dx=dx, ds=dscale,
            do=doffset,
        )  # fmt: skip
        none = device.allocate((0,), np.dtype(np.float32))
        return dx, dscale, doffset, none, none

    return run
