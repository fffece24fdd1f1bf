"""`tf.contrib.solvers`: linear systems and least squares of operators that are only applied."""

from __future__ import annotations

from opdock.contrib.solvers import lanczos, least_squares, linear_equations, util

__all__ = ["lanczos", "least_squares", "linear_equations", "util"]
