"""TF's place of `opdock.api.graph_util`."""

from opdock.api.graph_util import (
    convert_variables_to_constants,
    extract_sub_graph,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]  # fmt: skip
