"""`tf.contrib.quantize`: graphs that train, or are judged, as they will compute in 8 bits.

Batch normalizations are folded into the layers before them (`folding.py`, `folding_by_name.py`),
layers and the sums behind them are found (`layers.py`), and what they take and give is rounded as
8 bits will round it (`insertion.py`, `ranges.py`).
"""

from __future__ import annotations

from opdock.contrib.quantize.rewrites import (
    create_eval_graph,
    create_training_graph,
    experimental_create_eval_graph,
    experimental_create_training_graph,
)

__all__ = [
    "create_eval_graph", "create_training_graph", "experimental_create_eval_graph",
    "experimental_create_training_graph",
]  # fmt: skip
