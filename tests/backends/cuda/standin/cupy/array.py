"""Arrays in a memory that counts itself."""

from __future__ import annotations

import numpy as np

from cupy import cuda


class ndarray(np.ndarray):
    """An array that meets others of its kind only."""

    __array_priority__ = 100

    def __new__(cls, shape, dtype=float, memptr=None):
        dtype = np.dtype(dtype)
        shape = tuple(shape) if np.iterable(shape) else (shape,)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memptr = memptr or cuda.alloc(size)
        flat = memptr.mem.block[memptr.offset : memptr.offset + size]
        return np.ndarray.__new__(cls, shape, dtype, buffer=flat)

    @property
    def data(self):
        return cuda.MemoryPointer.of(self)

    @property
    def device(self):
        return cuda.Device(0)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        for value in (*inputs, *kwargs.get("out", ())):
            if isinstance(value, np.ndarray) and not isinstance(value, ndarray):
                raise TypeError(f"Unsupported type {type(value)}")
        plain = [np.asarray(v) if isinstance(v, ndarray) else v for v in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(np.asarray(v) for v in kwargs["out"])
        return done(lambda: getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, fn, types, args, kwargs):
        call = super().__array_function__
        return done(lambda: call(fn, types, args, kwargs))

    def __getitem__(self, key):
        if isinstance(key, np.ndarray) and key.dtype == np.bool_:
            cuda.waited()  # how many there are decides the shape
        get = super().__getitem__
        return done(lambda: get(key))

    def astype(self, dtype, **options):
        plain = np.asarray(self)
        return done(lambda: plain.astype(dtype, **options))

    def reshape(self, *shape, order="C"):
        return super().reshape(*(shape or ((),)), order=order)

    def copy(self, order="C"):
        plain = np.asarray(self)
        return done(lambda: plain.copy(order))

    def __int__(self):
        cuda.waited()
        return super().__int__()

    def __float__(self):
        cuda.waited()
        return super().__float__()

    def __bool__(self):
        cuda.waited()
        return super().__bool__()

    def item(self, *args):
        cuda.waited()
        return super().item(*args)

    def tolist(self):
        cuda.waited()
        return super().tolist()


for _name in ("sum", "prod", "max", "min", "argmax", "argmin", "all", "any", "mean", "cumsum"):

    def _method(self, *args, _name=_name, **kwargs):
        return done(lambda: getattr(np.asarray(self), _name)(*args, **kwargs))

    setattr(ndarray, _name, _method)


def done(compute):
    """Does a piece of work now, and again whenever the graph runs that captures it."""
    out = wrap(compute())
    if cuda.capturing():
        cuda.get_current_stream().graph.append(lambda: _refill(out, compute()))
    return out


def _refill(out, value):
    if isinstance(out, np.ndarray):
        np.ndarray.__setitem__(out, ..., value)
    elif isinstance(out, (tuple, list)):
        for a, b in zip(out, value, strict=True):
            _refill(a, b)


def wrap(value):
    """What a NumPy function gave, as CuPy gives it: never a scalar, never a host array."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, np.ndarray):
        return _counted(value)
    if isinstance(value, np.generic):
        return _counted(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(wrap, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(wrap, value))
    return value


def _counted(value):
    """A result in memory from the pool; a view of an array stays one."""
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is not value and cuda.owns(base):
        return value.view(ndarray)
    out = ndarray(value.shape, value.dtype)
    np.ndarray.__setitem__(out, ..., value)
    return out
