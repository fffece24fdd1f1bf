"""NumPy's BLAS on one thread, for as long as a call takes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import threadpoolctl

from opdock_cpu import blas
from tests.threads import WAIT


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
        call = blas.unshared(lambda a: barrier.wait(WAIT) and a @ a)
        barrier.wait(WAIT)
        for _ in range(50):
            call(np.ones((8, 8)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert pools() == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_triangles(dtype, lower, adjoint):
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(60, 60)) + 60 * np.eye(60) + 1j * rng.normal(size=(60, 60))
    matrix = (matrix if np.dtype(dtype).kind == "c" else matrix.real).astype(dtype)
    rhs = rng.normal(size=(60, 3)).astype(dtype)
    kept = np.tril(matrix) if lower else np.triu(matrix)
    solved = blas.solve_triangle(matrix, rhs, lower, adjoint)
    assert solved.dtype == dtype and solved.flags.c_contiguous
    np.testing.assert_allclose((kept.conj().T if adjoint else kept) @ solved, rhs, atol=1e-4)


def test_files_belong_to_the_library_in_whose_folder_they_lie():
    mine = "/lib/site-packages/numpy.libs/libscipy_openblas64_-1.so"
    assert blas._belongs(mine, "numpy") and not blas._belongs(mine, "scipy")
    assert blas._belongs("/lib/site-packages/scipy/.dylibs/libscipy_openblas.dylib", "scipy")


@pytest.mark.parametrize("name", ["cholesky", "det", "eigh", "inv", "qr", "slogdet", "svd"])
def test_factorisations_of_middle_sizes_take_what_numpys_take(name):
    from array_api_compat.numpy import linalg

    from opdock_cpu.namespace import namespace

    square = np.random.default_rng(1).normal(size=(60, 60))
    square = square @ square.T + np.eye(60)
    words = {"full_matrices": False} if name == "svd" else {}
    found = getattr(namespace.linalg, name)(square, **words)
    wanted = getattr(linalg, name)(square, **words)
    for a, b in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@needs_openblas
def test_whoever_leaves_last_puts_back_what_was_before():
    """Whichever threads came and left in between, the one that asked first or another."""
    before = pools()
    inside, leave = threading.Event(), threading.Event()

    def first():
        with blas.at_most(1):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with blas.at_most(2):
        assert set(pools()) == {1}
        leave.set()
        thread.join()
        assert set(pools()) == {2}
    assert pools() == before
