"""What is left of a pruned network when it is no longer trained: its weights with their zeros."""

from __future__ import annotations

from typing import Any

import opdock as tf

__all__ = ["graph_def_from_checkpoint", "strip_pruning_vars_fn"]


def strip_pruning_vars_fn(input_graph_def: Any, output_node_names: list[str]) -> Any:
    """A frozen graph with masked weights in the place of weights and masks.

    Args:
        input_graph_def: a GraphDef whose variables are constants.
        output_node_names: the nodes that are wanted of it.

    Returns:
        A GraphDef.
    """
    names = [node.name for node in input_graph_def.node if "masked_weight" in node.name]
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(input_graph_def, name="")
        with tf.Session(graph=graph) as session:
            values = session.run({name: f"{name}:0" for name in names})
    stripped = tf.GraphDef()
    for node in input_graph_def.node:
        kept = stripped.node.add()
        if node.name not in values:
            kept.CopyFrom(node)
            continue
        kept.name, kept.op = node.name, "Const"
        kept.attr["dtype"].CopyFrom(node.attr["T"])
        kept.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values[node.name]))
    return tf.graph_util.extract_sub_graph(stripped, output_node_names)


def graph_def_from_checkpoint(checkpoint_dir: str, output_node_names: list[str]) -> Any:
    """The graph of a folder's latest checkpoint, with its variables as constants.

    Args:
        checkpoint_dir: the folder.
        output_node_names: the nodes that are wanted.

    Returns:
        A GraphDef.

    Raises:
        ValueError: there is no checkpoint.
    """
    path = tf.train.latest_checkpoint(checkpoint_dir)
    if path is None:
        raise ValueError(f"Could not find a checkpoint at: {checkpoint_dir}.")
    with tf.Graph().as_default() as graph:
        saver = tf.train.import_meta_graph(f"{path}.meta", clear_devices=True)
        with tf.Session(graph=graph) as session:
            saver.restore(session, path)
            return tf.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), output_node_names
            )
