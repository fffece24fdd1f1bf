"""Input functions of arrays and frames, which shuffle where nothing else is said."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["numpy_input_fn", "pandas_input_fn"]

_tf: Any = importlib.import_module("opdock")


def numpy_input_fn(
    x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
    shuffle: bool = True, queue_capacity: int = 1000, num_threads: int = 1,
) -> Any:  # fmt: skip
    """`tf.estimator.inputs.numpy_input_fn`, which says what the arguments are."""
    return _tf.estimator.inputs.numpy_input_fn(**locals())


def pandas_input_fn(
    x: Any, y: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
    shuffle: bool = True, queue_capacity: int = 1000, num_threads: int = 1,
    target_column: str = "target",
) -> Any:  # fmt: skip
    """`tf.estimator.inputs.pandas_input_fn`, which says what the arguments are."""
    return _tf.estimator.inputs.pandas_input_fn(**locals())
