"""A stand-in for cuDNN's frontend: graphs that are checked as cuDNN checks them, run on NumPy."""

from __future__ import annotations

import ctypes
import enum
import itertools
import types

import ml_dtypes
import numpy as np
from cupy import cuda

data_type = enum.Enum("data_type", "FLOAT HALF BFLOAT16")
heur_mode = enum.Enum("heur_mode", "A B FALLBACK")
numerical_note = enum.Enum("numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS NONDETERMINISTIC")
_NUMPY = {"FLOAT": np.float32, "HALF": np.float16, "BFLOAT16": ml_dtypes.bfloat16}
PLANNED = []
"""The kind of every graph's operations, and the notes that it refused."""


class cudnnGraphNotSupportedError(RuntimeError):
    pass


def backend_version():
    return 92000


def create_handle():
    return types.SimpleNamespace(stream=0)


def set_stream(*, handle, stream):
    handle.stream = stream


class Tensor:
    def __init__(self, graph, name="", dim=None, stride=None, virtual=True):
        self.graph, self.name, self.virtual = graph, name, virtual
        self.dim, self.stride = dim, stride

    def set_output(self, flag):
        self.virtual = not flag
        return self

    def set_dim(self, dim):
        self.dim = list(dim)
        return self

    def set_stride(self, stride):
        self.stride = list(stride)
        return self


class pygraph:
    def __init__(self, io_data_type, intermediate_data_type, compute_data_type, handle):
        self.dtype = np.dtype(_NUMPY[io_data_type.name])
        self.ops, self.state, self.refused = [], "made", []

    def tensor(self, *, name, dim, stride):
        assert len(dim) == len(stride) and 0 not in dim
        return Tensor(self, name, list(dim), list(stride), virtual=False)

    def _add(self, kind, compute, count=1):
        out = [Tensor(self, kind) for _ in range(count)]
        self.ops.append((kind, out, compute))
        return out[0] if count == 1 else tuple(out)

    # ------------------------------------------------------------ operations
    def conv_fprop(self, *, image, weight, **moves):
        return self._add("conv_fprop", lambda v, o: _fprop(v(image), v(weight), **moves))

    def conv_dgrad(self, *, loss, filter, **moves):
        return self._add("conv_dgrad", lambda v, o: _dgrad(v(loss), v(filter), o[0].dim, **moves))

    def conv_wgrad(self, *, image, loss, **moves):
        return self._add("conv_wgrad", lambda v, o: _wgrad(v(image), v(loss), o[0].dim, **moves))

    def bias(self, *, name, input, bias):
        return self._add("bias", lambda v, o: v(input) + v(bias))

    def relu(self, *, name, input):
        return self._add("relu", lambda v, o: np.maximum(v(input), 0))

    def batchnorm_backward(self, *, grad, input, scale, mean, inv_variance):
        def compute(v, o):
            dy, hat, rows = v(grad), (v(input) - v(mean)) * v(inv_variance), (0, 2, 3)
            ds, do = (t.sum(rows, keepdims=True) for t in (dy * hat, dy))
            n = dy.size // ds.size
            return v(scale) * v(inv_variance) * (dy - do / n - hat * ds / n), ds, do

        return self._add("batchnorm_backward", compute, 3)

    # ------------------------------------------------------------ planning
    def _to(self, before, after):
        assert self.state == before, f"{after} after {self.state}"
        self.state = after

    def validate(self):
        self._to("made", "valid")

    def build_operation_graph(self):
        self._to("valid", "graph")
        for kind, outputs, _ in self.ops:
            if any(not t.virtual and (t.dim is None or t.stride is None) for t in outputs):
                raise RuntimeError(f"{kind}: an output has no dimensions")

    def create_execution_plans(self, modes):
        self._to("graph", "plans")
        assert modes

    def deselect_numeric_notes(self, notes):
        assert self.state == "plans"
        self.refused += notes

    def check_support(self):
        self._to("plans", "supported")

    def build_plans(self):
        self._to("supported", "built")
        PLANNED.append((tuple(kind for kind, _, _ in self.ops), tuple(self.refused)))

    def get_workspace_size(self):
        return 64

    def execute(self, pack, workspace, handle):
        assert self.state == "built" and workspace
        assert handle.stream == cuda.get_current_stream().ptr

        def work():
            known = {}

            def value(tensor):
                if tensor not in known:
                    known[tensor] = _memory(pack[tensor], tensor, self.dtype).astype(np.float32)
                return known[tensor]

            for _, outputs, compute in self.ops:
                results = compute(value, outputs)
                for tensor, result in zip(
                    outputs, results if len(outputs) > 1 else (results,), strict=True
                ):
                    known[tensor] = result
                    if not tensor.virtual:
                        _memory(pack[tensor], tensor, self.dtype)[...] = result.astype(self.dtype)

        cuda.enqueue(work)


def _memory(address, tensor, dtype):
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.dim, tensor.stride, strict=True))
    flat = np.frombuffer((ctypes.c_char * (extent * dtype.itemsize)).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(
        flat, tensor.dim, [s * dtype.itemsize for s in tensor.stride]
    )


def _taps(image, weight, result, pre_padding, post_padding, stride, dilation):
    """Each window element, and a view of the padded images at all positions."""
    if list(pre_padding) != list(post_padding):
        raise cudnnGraphNotSupportedError("padding that is not the same on both sides")
    pads = [(0, 0), (0, 0), *((p, p) for p in pre_padding)]
    padded = np.pad(image, pads)
    for r, s in itertools.product(range(weight[2]), range(weight[3])):
        rows, columns = (
            slice(o * d, o * d + (n - 1) * t + 1, t)
            for o, d, n, t in zip((r, s), dilation, result, stride, strict=True)
        )
        yield r, s, padded, (slice(None), slice(None), rows, columns)


def _fprop(x, w, **moves):
    size = [(n + a + b - (k - 1) * d - 1) // s + 1 for n, a, b, k, d, s in zip(
        x.shape[2:], moves["pre_padding"], moves["post_padding"], w.shape[2:], moves["dilation"],
        moves["stride"], strict=True)]  # fmt: skip
    groups = x.shape[1] // w.shape[1]
    out = np.zeros((x.shape[0], w.shape[0], *size), np.float32)
    c, k = w.shape[1], w.shape[0] // groups
    for r, s, padded, at in _taps(x, w.shape, size, **moves):
        for g in range(groups):
            out[:, g * k : g * k + k] += np.einsum(
                "nchw,kc->nkhw", padded[at][:, g * c : g * c + c], w[g * k : g * k + k, :, r, s]
            )
    return out


def _dgrad(dy, w, dim, pre_padding, **moves):
    moves["pre_padding"] = pre_padding
    padded_grad = None
    groups = dim[1] // w.shape[1]
    c, k = w.shape[1], w.shape[0] // groups
    for r, s, padded, at in _taps(np.zeros(dim, np.float32), w.shape, dy.shape[2:], **moves):
        padded_grad = np.zeros_like(padded) if padded_grad is None else padded_grad
        for g in range(groups):
            padded_grad[at][:, g * c : g * c + c] += np.einsum(
                "nkhw,kc->nchw", dy[:, g * k : g * k + k], w[g * k : g * k + k, :, r, s]
            )
    (top, left), (_, _, h, w_) = pre_padding, dim
    return padded_grad[:, :, top : top + h, left : left + w_]


def _wgrad(x, dy, dim, **moves):
    out = np.zeros(dim, np.float32)
    groups = x.shape[1] // dim[1]
    c, k = dim[1], dim[0] // groups
    for r, s, padded, at in _taps(x, dim, dy.shape[2:], **moves):
        for g in range(groups):
            out[g * k : g * k + k, :, r, s] = np.einsum(
                "nchw,nkhw->kc", padded[at][:, g * c : g * c + c], dy[:, g * k : g * k + k]
            )
    return out
