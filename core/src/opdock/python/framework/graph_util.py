"""TF's place of `opdock.graph_util`."""

from opdock.graph_util import (
    convert_variables_to_constants,
    extract_sub_graph,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]
