"""`tf.linalg`: matrix products, factorisations, solvers and functions of matrices."""

from __future__ import annotations

import importlib
from typing import Any

from opdock.ops.clip import global_norm
from opdock.ops.composed.eye import eye
from opdock.ops.composed.lu_functions import lu_matrix_inverse, lu_reconstruct, lu_solve
from opdock.ops.composed.matrix_norm import norm, normalize
from opdock.ops.composed.moments import l2_normalize
from opdock.ops.composed.tensordot import tensordot
from opdock.ops.decompositions import cholesky, lu, qr, self_adjoint_eig, self_adjoint_eigvals, svd
from opdock.ops.diag import diag as tensor_diag
from opdock.ops.diag import diag_part as tensor_diag_part
from opdock.ops.diag import matrix_diag, matrix_diag_part, matrix_set_diag
from opdock.ops.einsum import einsum
from opdock.ops.linalg import adjoint, matmul, matvec, trace
from opdock.ops.matrix import matrix_band_part, matrix_transpose
from opdock.ops.matrix_functions import logdet, logm, matrix_exponential, matrix_rank, pinv, sqrtm
from opdock.ops.solve import (
    cholesky_solve,
    log_matrix_determinant,
    matrix_determinant,
    matrix_inverse,
    matrix_solve,
    matrix_solve_ls,
    matrix_triangular_solve,
)  # fmt: skip
from opdock.ops.sums import cross
from opdock.ops.tridiagonal import tridiagonal_matmul, tridiagonal_solve

band_part = matrix_band_part
det = matrix_determinant
diag = matrix_diag
diag_part = matrix_diag_part
eigh = self_adjoint_eig
eigvalsh = self_adjoint_eigvals
expm = matrix_exponential
inv = matrix_inverse
lstsq = matrix_solve_ls
set_diag = matrix_set_diag
slogdet = log_matrix_determinant
solve = matrix_solve
transpose = matrix_transpose
triangular_solve = matrix_triangular_solve

__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part",
    "eigh", "eigvalsh", "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet",
    "logm", "lstsq", "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matmul",
    "matrix_rank", "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag",
    "slogdet", "solve", "sqrtm", "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace",
    "transpose", "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Operators are a library over these functions; they load when one is asked for.
    if name.startswith("LinearOperator"):
        found = getattr(importlib.import_module("opdock.linear"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'opdock.linalg' has no attribute {name!r}")
