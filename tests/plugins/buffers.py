"""Two backends that are careless about the buffers which a program plans for results.

SLIPSHOD has kernels that say `out=True`: one leaves the buffer alone, one fills a part of it, and
one is right. VARIADIC has an array library whose functions look like NumPy's ufuncs, take `out` by
its name alone, and count every array without a name among their operands, as those of Dask do; of
floats it makes no float64 unasked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import array_api_compat.numpy
import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    NodeSig,
    Probe,
    as_dtype,
    dtypes,
    errors,
    hookimpl,
)

FLOAT = {dtypes.float32}


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    for name, table in (("slipshod", ("tests.plugins.buffers:table",)), ("variadic", ())):
        yield BackendSpec(
            name=name,
            device_type=name.upper(),
            own_type=name.upper(),
            api=(1, 2),
            priority=-50,
            probe="tests.plugins.buffers:probe",
            device=f"tests.plugins.buffers:{name.title()}",
            kernels=table,
        )


def probe() -> Probe:
    """Always one."""
    return Probe(devices=(DeviceAttributes(index=0, description="careless"),))


class Own(np.ndarray):
    """A buffer."""


class Slipshod(BaseDevice):
    """Memory of its own, which the host does not see."""

    dtypes = frozenset(FLOAT)

    def upload(self, array: np.ndarray[Any, Any]) -> Own:
        """A copy."""
        if as_dtype(array.dtype) not in self.dtypes:
            raise errors.UnimplementedError(None, None, f"no {array.dtype} here")
        return np.array(array, order="C").view(Own)

    def download(self, buffer: Own) -> np.ndarray[Any, Any]:
        """A copy."""
        return np.array(buffer, order="C", subok=False)


table = KernelTable()


@table.binder("AddV2", T=FLOAT, out=True)
def leaves(sig: NodeSig) -> Callable[..., Any]:
    return lambda x, y, out=None: np.add(x, y)


@table.binder("Mul", T=FLOAT, out=True)
def fills_a_part(sig: NodeSig) -> Callable[..., Any]:
    def multiply(x: Any, y: Any, out: Any = None) -> Any:
        if out is None:
            return np.multiply(x, y)
        product = np.multiply(x, y)
        out[:1] = product[:1]
        return out

    return multiply


@table.binder("Neg", T=FLOAT, out=True)
def is_right(sig: NodeSig) -> Callable[..., Any]:
    return np.negative


class Function:
    """A function of any number of arrays that has the attributes of a ufunc."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc, self.nin, self.nout = ufunc, ufunc.nin, ufunc.nout

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        made = self.ufunc(*operands[: self.nin])
        if out is None:
            return made
        out[...] = made
        return out


class Variadic_:
    """NumPy behind such functions."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(array_api_compat.numpy, name)
        return Function(found) if isinstance(found, np.ufunc) else found

    @functools.wraps(np.zeros)
    def zeros(self, shape: Any, dtype: Any = None, **options: Any) -> Any:
        if dtype is None:
            raise TypeError("float64 is nothing that this library has")
        return array_api_compat.numpy.zeros(shape, dtype=dtype, **options)


class Variadic(Slipshod):
    """Computes with these."""

    namespace = Variadic_()
