"""NumPy's BLAS on one thread, for as long as a call takes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import threadpoolctl

from opdock_cpu import blas


def pools():
    """How many threads each BLAS of the process has."""
    return [i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]


needs_openblas = pytest.mark.skipif(
    not any(i.get("threading_layer") == "pthreads" for i in threadpoolctl.threadpool_info()),
    reason="NumPy here is not built on OpenBLAS with threads of its own",
)


@pytest.fixture(autouse=True)
def four_threads():
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        yield


def test_what_openblas_shares():
    assert blas.shares(1, 512, 1000) and not blas.shares(1, 50, 100)
    assert blas.shares(64, 64, 128) and not blas.shares(32, 32, 32)


@needs_openblas
def test_one_thread_inside_and_as_before_outside():
    seen = []
    call = blas.unshared(lambda a, b: seen.append(pools()) or np.dot(a, b))
    before = pools()
    result = call(np.ones((3, 4)), np.ones((4, 5)))
    assert result.shape == (3, 5) and (result == 4).all()
    assert 1 in seen[0] and pools() == before


@needs_openblas
def test_an_error_lifts_the_limit():
    before = pools()
    with pytest.raises(ValueError, match="shapes"):
        blas.unshared(np.dot)(np.ones(3), np.ones(4))
    assert pools() == before


@needs_openblas
def test_callers_beside_each_other():
    """Whoever ends last restores what was there before the first began."""
    before, barrier = pools(), threading.Barrier(4)

    def work():
        call = blas.unshared(lambda a: barrier.wait(10) and a @ a)
        barrier.wait(10)
        for _ in range(50):
            call(np.ones((8, 8)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads) and pools() == before
