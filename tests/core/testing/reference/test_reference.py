"""The oracle is whole by itself: it imports NumPy only, and differentiation of it is right."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.testing.levels.gradients import directional, numeric_gradient
from opdock.testing.reference import _registry


def test_every_family_can_be_imported() -> None:
    assert _registry.load_families() == {}
    assert _registry.reference_for("RandomUniform") is not None
    assert _registry.reference_for("NoSuchOp") is None


def test_one_reference_an_op() -> None:
    with pytest.raises(ValueError, match="two references"):
        _registry.reference("RandomUniform")(lambda attrs: None)


def test_widening() -> None:
    assert _registry.widen(np.float16(1)).dtype == np.float64
    assert _registry.widen(np.uint8(1)).dtype == np.int64
    assert _registry.widen(np.complex64(1)).dtype == np.complex128
    assert _registry.widen(np.array([b"x"], object)).dtype == object
    assert _registry.widen(np.bool_(True)).dtype == np.bool_


def test_numeric_gradients() -> None:
    x = np.array([0.5, -1.5, 2.0])
    slope = numeric_gradient(lambda v: float((v**3).sum()), x)
    assert np.allclose(slope, 3 * x**2, atol=1e-6)
    z = np.array([1.0 + 2.0j])
    slope = numeric_gradient(lambda v: float((np.abs(v) ** 2).sum()), z)
    assert np.allclose(slope, 2 * z, atol=1e-6)  # d/dRe + i d/dIm of |z|**2
    along = np.array([0.3 - 0.2j])
    found = directional(lambda v: float((np.abs(v) ** 2).sum()), z, along)
    assert np.allclose(found, (2 * np.conj(z) * along).real.sum(), atol=1e-6)
