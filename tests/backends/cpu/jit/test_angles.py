"""Sine, cosine and tangent alone: loops where NumPy has no code for the processor's vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock_cpu.jit import numpy_codes, trigonometry

FAR = [0.0, -0.0, 1e6, 7e9, -3e30, np.float32(trigonometry.NEAR), np.inf, np.nan]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def _computed(op: str, x: np.ndarray) -> tuple[np.ndarray, str]:
    """The result, and the kernel that gave it."""
    spec: Any = registry.get(op)
    with tf.Graph().as_default(), tf.Session() as session, np.errstate(all="ignore"):
        given = tf.placeholder(x.dtype, [None])
        out = spec(given)
        rows = session.explain(out, {given: x}).rows
        return session.run(out, {given: x}), next(r.kernel for r in rows if r.op == op)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("op", ["Cos", "Sin", "Tan"])
def test_angles_near_and_far(op: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_codes, "wide", lambda _: wide)
    x = np.random.default_rng(2).normal(0, 5, 40_000).astype(np.float32)
    x[5_000 : 5_000 + len(FAR)] = FAR
    found, kernel = _computed(op, x)
    assert ("jit.angles" in kernel) is not wide
    with np.errstate(all="ignore"):
        exact = getattr(np, op.lower())(x.astype(np.longdouble))
        np.testing.assert_allclose(found, exact.astype(np.float32), rtol=6e-7)
    assert np.signbit(found[5_001]) == (op != "Cos")


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 70_001])
def test_blocks_of_every_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_codes, "wide", lambda _: False)
    x = np.linspace(-9, 9, size, dtype=np.float32)
    found, _ = _computed("Sin", x)
    np.testing.assert_allclose(found, np.sin(x.astype(np.float64)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("code", ["X86_V4", "AVX512_SKX", "X86_V3", "baseline(X86_V2)"])
def test_numpy_says_what_it_has(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    introspect = pytest.importorskip("numpy.lib.introspect", reason="NumPy 2 tells it")
    told = {"tan": {"ff": {"current": code, "available": code}}}
    monkeypatch.setattr(introspect, "opt_func_info", lambda **words: told)
    numpy_codes._codes.cache_clear()
    wide = code in ("X86_V4", "AVX512_SKX")
    assert (numpy_codes.wide("tan"), numpy_codes.chosen("tan")) == (wide, "base" not in code)
    numpy_codes._codes.cache_clear()
