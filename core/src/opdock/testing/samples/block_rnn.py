"""Samples of recurrent cells and sequences of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_BATCH, _WIDTH, _CELLS, _STEPS = 2, 3, 2, 4
_STATES = (1, 6)


def _weights(rng: Sampler) -> list[Any]:
    cells = (_CELLS,)
    return [
        rng.normal((_WIDTH + _CELLS, 4 * _CELLS), 0.5),
        rng.normal(cells), rng.normal(cells), rng.normal(cells), rng.normal((4 * _CELLS,), 0.5),
    ]  # fmt: skip


def _step(rng: Sampler) -> list[Any]:
    state = (_BATCH, _CELLS)
    return [rng.normal((_BATCH, _WIDTH)), rng.normal(state), rng.normal(state), *_weights(rng)]


def _tolerance(dtype: np.dtype[Any]) -> dict[str, Any]:
    if dtype.name != "float16":
        return {}
    return {"tol": (0.02, 0.02), "tol_reason": "every step rounds to half precision"}


@samples("LSTMBlockCell")
def cells(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """With and without peepholes and a limit."""
    wide = _tolerance(dtype)
    free = {"cell_clip": -1.0, "use_peephole": False}
    plain = {"grad_inputs": (0, 1, 2, 3, 7), "grad_outputs": _STATES}
    yield Sample(_step(rng), free, "plain", **plain, **wide)  # type: ignore[arg-type]
    peek = {"cell_clip": -1.0, "use_peephole": True, "forget_bias": 0.5}
    yield Sample(_step(rng), peek, "peephole", grad_outputs=_STATES, **wide)
    yield Sample(_step(rng), {"cell_clip": 0.3}, "clipped", grad=False, **wide)


@samples("LSTMBlockCellGrad")
def cell_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """With and without peepholes."""
    state = (_BATCH, _CELLS)
    for peek in (False, True):
        results = [rng.uniform(state, 0.1, 0.9) for _ in range(6)]
        grads = [rng.normal(state), rng.normal(state)]
        yield Sample(
            [*_step(rng), *results, *grads], {"use_peephole": peek}, f"peephole-{peek}",
            grad=False, **_tolerance(dtype),
        )  # fmt: skip


def _sequence(rng: Sampler, steps: int) -> list[Any]:
    x, *rest = _step(rng)
    return [np.array(steps, np.int64), rng.normal((_STEPS, *x.shape)), *rest]


@samples("BlockLSTM", "BlockLSTMV2")
def sequences(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """All steps and some of them."""
    wide = _tolerance(dtype)
    plain = {"grad_inputs": (1, 2, 3, 4, 8), "grad_outputs": _STATES}
    yield Sample(_sequence(rng, _STEPS), {"cell_clip": -1.0}, "plain", **plain, **wide)  # type: ignore[arg-type]
    peek = {"cell_clip": -1.0, "use_peephole": True}
    yield Sample(_sequence(rng, 2), peek, "short", grad_outputs=_STATES, **wide)
    yield Sample(_sequence(rng, 0), {"cell_clip": 0.3}, "none", grad=False, **wide)


@samples("BlockLSTMGrad", "BlockLSTMGradV2")
def sequence_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """With and without peepholes, all steps and some."""
    state = (_STEPS, _BATCH, _CELLS)
    for peek, steps in ((False, _STEPS), (True, 2)):
        results = [rng.uniform(state, 0.1, 0.9) for _ in range(7)]
        grads = [rng.normal(state), rng.normal(state)]
        yield Sample(
            [*_sequence(rng, steps), *results, *grads], {"use_peephole": peek},
            f"{steps}-steps", grad=False, **_tolerance(dtype),
        )  # fmt: skip


def _gru(rng: Sampler) -> list[Any]:
    both = _WIDTH + _CELLS
    return [
        rng.normal((_BATCH, _WIDTH)), rng.normal((_BATCH, _CELLS)),
        rng.normal((both, 2 * _CELLS), 0.5), rng.normal((both, _CELLS), 0.5),
        rng.normal((2 * _CELLS,)), rng.normal((_CELLS,)),
    ]  # fmt: skip


@samples("GRUBlockCell")
def gru_cells(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """One step."""
    yield Sample(_gru(rng), {}, "plain", grad_outputs=(3,))


@samples("GRUBlockCellGrad")
def gru_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """One step back."""
    results = [rng.uniform((_BATCH, _CELLS), 0.1, 0.9) for _ in range(3)]
    yield Sample([*_gru(rng), *results, rng.normal((_BATCH, _CELLS))], {}, "plain", grad=False)


@error_samples("LSTMBlockCell")
def bad_weights() -> Iterator[ErrorSample]:
    """A matrix for other inputs, and inputs of a wrong rank."""
    x, cs, h, w, *rest = _step(Sampler(np.float32, "bad weights"))
    message = r"w has shape \[4,8\] but inputs of size 3 and 2 cells need \[5,8\]"
    yield ErrorSample([x, cs, h, w[1:], *rest], match=message)
    yield ErrorSample([x[0], cs, h, w, *rest], {}, "ValueError", "must be rank 2", "build")


@error_samples("BlockLSTM")
def bad_length() -> Iterator[ErrorSample]:
    """More steps than the sequence has."""
    inputs = _sequence(Sampler(np.float32, "bad length"), _STEPS + 1)
    yield ErrorSample(inputs, match="seq_len_max 5 is not within the sequence's 4 steps")


@error_samples("GRUBlockCell")
def bad_gates() -> Iterator[ErrorSample]:
    """A matrix for another number of cells."""
    x, h, w_ru, *rest = _gru(Sampler(np.float32, "bad gates"))
    yield ErrorSample([x, h, w_ru[:, 1:], *rest], match=r"w_ru has shape \[5,3\]")
