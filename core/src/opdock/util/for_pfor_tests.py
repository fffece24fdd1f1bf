"""TF's `ops.parallel_for.test_util`: a vectorized loop against the same loop step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.api.test import TestCase
from opdock.ops.composed.vectorized_map import for_loop, pfor
from opdock.util import nest

__all__ = ["PForTestCase"]


class PForTestCase(TestCase):
    """Compares what `pfor` and `for_loop` make of one function."""

    def _run_targets(self, targets1: Any, targets2: Any = None, run_init: bool = True) -> Any:
        from opdock.graph.variables.variable_lists import global_variables_initializer

        first, second = nest.flatten(targets1), [] if targets2 is None else nest.flatten(targets2)
        if second and len(first) != len(second):
            raise AssertionError(f"{len(first)} results of one loop, {len(second)} of the other")
        if run_init:
            self.evaluate(global_variables_initializer())
        return self.evaluate([*first, *second])

    def run_and_assert_equal(self, targets1: Any, targets2: Any) -> None:
        """Runs both and compares what they give: floating-point numbers closely, texts exactly."""
        found = nest.flatten(self._run_targets(targets1, targets2))
        half = len(found) // 2
        for one, other in zip(found[:half], found[half:], strict=True):
            if np.asarray(other).dtype == object:
                self.assertAllEqual(other, one)
            else:
                self.assertAllClose(other, one, rtol=1e-4, atol=1e-5)

    def _test_loop_fn(
        self, loop_fn: Callable[..., Any], iters: Any, loop_fn_dtypes: Any = dtypes.float32,
        parallel_iterations: int | None = None,
    ) -> None:  # fmt: skip
        self.run_and_assert_equal(
            pfor(loop_fn, iters=iters, parallel_iterations=parallel_iterations),
            for_loop(loop_fn, loop_fn_dtypes, iters=iters, parallel_iterations=parallel_iterations),
        )
