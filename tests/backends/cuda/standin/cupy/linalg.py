"""NumPy's linear algebra on arrays of the stand-in."""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError  # noqa: F401

from cupy import _function

__all__ = [
    "LinAlgError", "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq",
    "matrix_norm", "matrix_power", "matrix_rank", "norm", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "trace", "vector_norm",
]  # fmt: skip
for _name in __all__[1:]:
    globals()[_name] = _function(getattr(np.linalg, _name))
