"""Generated draws against NumPy's: the same bits, but for roundings of normals."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu import philox
from opdock_cpu.jit import draws
from opdock_cpu.philox import Philox
from opdock_cpu.threads import use_threads
from tests.threads import WAIT

COUNT = 2 * draws._CHUNK + 3
COUNTERS = [0, 2**64 - 5, 2**128 - 5, (9 << 64) + 2**32 - 1]
KEY = 0xFEDCBA9876543210
PLACES = np.random.default_rng(2).integers(0, 2**40, COUNT)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def by_numpy(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(philox, "drawn", lambda *_: None)
        return make()


def kind_is_used(kind: str, blocks: Any, counter: int = 0) -> bool:
    return draws.drawn(kind, KEY, counter, blocks) is not None


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("blocks", [COUNT, PLACES], ids=["next", "chosen"])
def test_words(counter: int, blocks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Philox(KEY, counter)
    draw = stream.blocks if isinstance(blocks, int) else stream.blocks_at
    assert kind_is_used("words", blocks)
    np.testing.assert_array_equal(draw(blocks), by_numpy(monkeypatch, lambda: draw(blocks)))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("draw", ["units", "units64", "normals"])
def test_numbers(draw: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Philox(KEY, 2**64 - 7)
    use_threads(threads)
    try:
        for count in (2 * COUNT + 1, COUNT):
            found = getattr(stream, draw)(count)
            wanted = by_numpy(monkeypatch, lambda count=count: getattr(stream, draw)(count))
            assert found.dtype == wanted.dtype
            np.testing.assert_array_max_ulp(found, wanted, 1 if draw == "normals" else 0)
    finally:
        use_threads(0)


def test_few_draws_load_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws.llvm, "started", lambda: False)
    monkeypatch.setattr(draws, "_spent", 0)
    assert not kind_is_used("unit", draws._SMALL - 2 * draws._CALL)
    assert kind_is_used("unit", draws._CALL)


def test_many_draws_load_it_however_few_each_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws.llvm, "started", lambda: False)
    monkeypatch.setattr(draws, "_spent", 0)
    used = [kind_is_used("unit", 1) for _ in range(draws._SMALL // (1 + draws._CALL) + 1)]
    assert used[-1]
    assert not any(used[:-1])


def test_few_normals_do_not_depend_on_the_compiler() -> None:
    assert not kind_is_used("normal", draws._FEW - 1)
    assert kind_is_used("normal", draws._FEW)


@pytest.mark.parametrize("draw", [tf.random_normal, tf.truncated_normal, tf.random_uniform])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_ops_draw_the_same(draw: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def values() -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(draw([4 * draws._SMALL + 5], dtype=dtype, seed=7))

    np.testing.assert_array_max_ulp(values(), by_numpy(monkeypatch, values), 1)


def _in_the_child(queue: Any) -> None:
    queue.put(Philox(KEY).units(8 * COUNT).sum())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_draws_too() -> None:
    here = Philox(KEY).units(8 * COUNT).sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_the_child, args=(queue,))
    child.start()
    assert queue.get(timeout=WAIT) == here
    child.join()
