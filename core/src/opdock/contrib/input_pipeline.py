"""`tf.contrib.input_pipeline`: names in turn, with the place in the list in a variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.scopes import colocate_with, control_dependencies
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.arithmetic import floormod
from opdock.ops.array import size
from opdock.ops.gather import gather
from opdock.ops.state import assign, count_up_to

__all__ = ["obtain_next", "seek_next"]


def obtain_next(string_list_tensor: Any, counter: Any) -> Any:
    """The string after the last one, and after all of them the first.

    Args:
        string_list_tensor: a vector of strings.
        counter: an int64 variable, the index of the last one; -1 in the beginning.
    """
    length = size(string_list_tensor, out_type=dtypes.int64)
    return gather(string_list_tensor, assign(counter, floormod(counter + 1, length)))


def seek_next(
    string_list: list[str], shuffle: bool = False, seed: Any = None, num_epochs: int | None = None
) -> Any:
    """The strings of a list in turn, again and again.

    Args:
        string_list: the list.
        shuffle: whether they are shuffled, anew for each time through.
        seed: the seed of that; none if None.
        num_epochs: how many times through before OutOfRangeError; without end if None.
    """
    draws = np.random.default_rng(seed or None)
    expanded: list[str] = []
    for _ in range(num_epochs or 1):
        expanded += [*draws.permutation(string_list).tolist()] if shuffle else string_list
    with variable_scope("obtain_next"):
        counter = _kept("obtain_next_counter", constant(-1, dtypes.int64))
        with colocate_with(counter):
            strings = _kept("obtain_next_expanded_list", constant(expanded))
        if not num_epochs:
            return obtain_next(strings, counter)
        seen = _kept("obtain_next_filename_counter", constant(0, dtypes.int64))
        with control_dependencies([count_up_to(seen, len(expanded))]):
            return obtain_next(strings, counter)


def _kept(name: str, initial: Any) -> Any:
    return get_variable(name, initializer=initial, dtype=initial.dtype, trainable=False)
