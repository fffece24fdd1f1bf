"""NumPy's linear algebra on arrays of the stand-in."""

from __future__ import annotations

import numpy as np

from cupy import _function

LinAlgError = np.linalg.LinAlgError
# Named by `import *`, which array_api_compat uses.
_NAMES = (
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matrix_norm",
    "matrix_power", "matrix_rank", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "trace", "vector_norm",
)  # fmt: skip
for _name in _NAMES:
    if hasattr(np.linalg, _name):  # NumPy 1 has not all of them
        globals()[_name] = _function(getattr(np.linalg, _name))
