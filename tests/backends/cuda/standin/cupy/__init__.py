"""A stand-in for CuPy on NumPy: as much of it as opdock_cuda and the portable kernels call.

Its arrays refuse to meet NumPy's, as CuPy's do, so a value that was never uploaded is found; its
memory is counted; its kernels are the CUDA text itself, compiled for the host (`raw.py`).
"""

from __future__ import annotations

import functools
import types

import numpy as np

from cupy import cuda
from cupy.array import done, ndarray
from cupy.raw import RawModule  # noqa: F401 - what opdock_cuda takes from here

__version__ = "14.0.0"

abs, max, min, round = (None,) * 4  # bound below; `import *` does not bring them


# The shape of what they give depends on values.
_WAITING = {"nonzero", "argwhere", "flatnonzero", "unique", "unique_all", "unique_counts",
            "unique_inverse", "unique_values"}  # fmt: skip


def _function(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        kwargs.pop("blocking", None)
        _refuse_hosts(args)
        _refuse_hosts(kwargs.values())
        if fn.__name__ in _WAITING:
            cuda.waited()
        return done(lambda: fn(*args, **kwargs))

    return call


def _refuse_hosts(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            _refuse_hosts(value)
        elif isinstance(value, np.ndarray) and not isinstance(value, ndarray):
            raise TypeError(f"Unsupported type {type(value)}")


_MAKERS = {"array", "asarray", "ascontiguousarray"}
for _name in dir(np):
    _value = getattr(np, _name)
    if _name.startswith("_") or isinstance(_value, types.ModuleType) or _name == "ndarray":
        continue
    if isinstance(_value, (np.ufunc, types.FunctionType, types.BuiltinFunctionType)) or (
        type(_value).__name__ == "_ArrayFunctionDispatcher"
    ):
        globals()[_name] = _function(_value)
    elif _name not in globals() or _name in ("abs", "max", "min", "round"):
        globals()[_name] = _value


def _made(fn):
    def call(value, *args, blocking=False, **kwargs):
        return done(lambda: fn(value, *args, **kwargs))

    return call


for _name in _MAKERS:
    globals()[_name] = _made(getattr(np, _name))


def asnumpy(value, *args, **kwargs):
    """A copy in host memory."""
    cuda.waited()
    return np.array(value, order="C", subok=False)


def get_default_memory_pool():
    return cuda.memory.default_pool


from cupy import fft, linalg  # noqa: E402, F401 - they need the functions above


def _name_the_namespace():
    """array_api_compat asks whether an array is NumPy's first; these are, and yet are not."""
    import array_api_compat.cupy as compat
    from array_api_compat.common import _helpers

    plain = _helpers._cls_to_namespace

    def namespace(cls, api_version, use_compat):
        if issubclass(cls, ndarray):
            return compat, None
        return plain(cls, api_version, use_compat)

    _helpers._cls_to_namespace = namespace


_name_the_namespace()
