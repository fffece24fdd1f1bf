"""What the functions of complex numbers and of their parts compute."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Complex")
def complex_(attrs: Attrs, real: Array, imag: Array) -> Array:
    """Two parts as one number."""
    out = np.zeros(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    out.real, out.imag = real, imag
    return out


@reference("Real")
def real(attrs: Attrs, z: Array) -> Array:
    """The real part."""
    return (z + np.conj(z)).real / 2


@reference("Imag")
def imag(attrs: Attrs, z: Array) -> Array:
    """The imaginary part."""
    return (-1j * (z - np.conj(z))).real / 2


@reference("Conj")
def conj(attrs: Attrs, z: Array) -> Array:
    """The imaginary part turned round."""
    return complex_({}, z.real, -z.imag)


@reference("Angle")
def angle(attrs: Attrs, z: Array) -> Array:
    """The argument."""
    return np.array([cmath.phase(v) for v in z.ravel()], np.float64).reshape(z.shape)


@reference("ComplexAbs")
def complex_abs(attrs: Attrs, z: Array) -> Any:
    """The modulus."""
    return np.sqrt(z.real**2 + z.imag**2)
