"""The older parallel interleave, which readers of several files use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.steps import DatasetLike, Made, inner_spec, int64
from opdock.data.util import structure
from opdock.data.util.convert import optional_param_to_tensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.data_functions import parallel_interleave_dataset_op

__all__ = ["parallel_interleaved"]


def parallel_interleaved(
    dataset: DatasetLike, map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1,
    sloppy: Any = False, buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Made:  # fmt: skip
    """See `tf.data.experimental.parallel_interleave`."""
    function = StructuredFunctionWrapper(
        map_func, "tf.data.experimental.parallel_interleave()", dataset=dataset
    )
    spec = inner_spec(function)
    variant = parallel_interleave_dataset_op(
        dataset._variant_tensor, function.captured, int64(cycle_length, "cycle_length"),
        int64(block_length, "block_length"),
        convert_to_tensor(sloppy, dtype=dtypes.bool, name="sloppy"),
        optional_param_to_tensor(
            "buffer_output_elements", buffer_output_elements, 2 * block_length
        ),
        optional_param_to_tensor(
            "prefetch_input_elements", prefetch_input_elements, 2 * cycle_length
        ),
        f=function.function, **structure.flat_structure(spec),
    )  # fmt: skip
    return Made(variant, spec, [function])
