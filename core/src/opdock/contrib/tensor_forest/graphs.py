"""The graphs of forests: what trains them, what predicts by them, and what tells of them."""

from __future__ import annotations

from typing import Any

import opdock as tf
from opdock.api import logging
from opdock.contrib.framework.variables import VariableDeviceChooser
from opdock.contrib.tensor_forest.hparams import build_params_proto, messages
from opdock.contrib.tensor_forest.inputs import parsed_features, parsed_labels
from opdock.contrib.tensor_forest.resources import fertile_stats_variable, tree_variable
from opdock.ops import tensor_forest as forest_ops

__all__ = ["ForestVariables", "RandomForestGraphs", "RandomTreeGraphs", "TreeVariables"]


class TreeVariables:
    """The resources of a tree.

    Args:
        params: the forest's parameters.
        tree_num: the tree's number.
        training: whether it is trained, and so has counts too.
        tree_config: a serialized `Model` message to begin with.
        tree_stat: a serialized `FertileStats` message to begin with.
    """

    def __init__(
        self, params: Any, tree_num: int, training: bool, tree_config: Any = "", tree_stat: Any = ""
    ) -> None:
        known = getattr(params, "params_proto", None)
        if not isinstance(known, messages.TensorForestParams):
            params.params_proto = build_params_proto(params)
        params.serialized_params_proto = params.params_proto.SerializeToString()
        self.stats: Any = None
        if training:
            name = self.get_tree_name("stats", tree_num)
            self.stats = fertile_stats_variable(params, tree_stat, name)
        self.tree: Any = tree_variable(
            params, tree_config, self.stats, self.get_tree_name("tree", tree_num)
        )

    def get_tree_name(self, name: str, num: int) -> str:
        """The name of one of a tree's resources."""
        return f"{name}-{num}"


class ForestVariables:
    """The resources of all trees, by number.

    Args:
        params: the forest's parameters.
        device_assigner: what says where a tree is, as `tf.device` takes it.
        training: whether the forest is trained.
        tree_variables_class: what has the resources of a tree.
        tree_configs: for each tree a serialized message to begin with.
        tree_stats: for each tree the message of its counts.
    """

    def __init__(
        self, params: Any, device_assigner: Any, training: bool = True,
        tree_variables_class: Any = TreeVariables, tree_configs: Any = None, tree_stats: Any = None,
    ) -> None:  # fmt: skip
        # Variables without elements: where they are, all of their tree is.
        with tf.device(device_assigner):
            self.device_dummies = [
                tf.get_variable(f"device_dummy_{i}", shape=[0]) for i in range(params.num_trees)
            ]
        self.variables: list[Any] = []
        for i, dummy in enumerate(self.device_dummies):
            given: dict[str, Any] = {}
            if tree_configs is not None:
                given["tree_config"] = tree_configs[i]
            if tree_stats is not None:
                given["tree_stat"] = tree_stats[i]
            with tf.device(dummy.device):
                self.variables.append(tree_variables_class(params, i, training, **given))

    def __setitem__(self, t: int, val: Any) -> None:
        self.variables[t] = val

    def __getitem__(self, t: int) -> Any:
        return self.variables[t]


class RandomForestGraphs:
    """Makes the graphs of a forest.

    Args:
        params: the forest's parameters, filled.
        tree_configs: for each tree a serialized `Model` message to begin with.
        tree_stats: for each tree a serialized `FertileStats` message.
        device_assigner: what says where a tree is; variables' own rule when None.
        variables: the resources of all trees; they are made when None.
        tree_variables_class: what has the resources of a tree.
        tree_graphs: what makes the graphs of a tree.
        training: whether the forest is trained.
    """

    def __init__(
        self, params: Any, tree_configs: Any = None, tree_stats: Any = None,
        device_assigner: Any = None, variables: Any = None,
        tree_variables_class: Any = TreeVariables, tree_graphs: Any = None, training: bool = True,
    ) -> None:  # fmt: skip
        self.params = params
        self.device_assigner = device_assigner or VariableDeviceChooser()
        logging.info("Constructing forest with params = ")
        logging.info(params.__dict__)
        self.variables = variables or ForestVariables(
            params,
            device_assigner=self.device_assigner,
            training=training,
            tree_variables_class=tree_variables_class,
            tree_configs=tree_configs,
            tree_stats=tree_stats,
        )
        of_tree: Any = tree_graphs or RandomTreeGraphs
        self.trees: list[Any] = [
            of_tree(self.variables[i], params, i) for i in range(params.num_trees)
        ]

    def _on_device(self, tree: int) -> Any:
        return tf.device(self.variables.device_dummies[tree].device)

    def _features(self, tree: int, dense: Any, sparse: Any, spec: Any) -> tuple[Any, Any]:
        """The dense features that a tree sees, and their description."""
        if not self.params.bagged_features:
            return dense, spec
        if sparse is not None:
            raise NotImplementedError("Feature bagging not supported with sparse features.")
        chosen = self.params.bagged_features[tree]
        return tf.gather(dense, chosen, axis=1), spec.chosen(chosen)

    def get_all_resource_handles(self) -> list[Any]:
        """The handles of all trees, and those of their counts."""
        trees = [self.variables[i] for i in range(len(self.trees))]
        return [tree.tree for tree in trees] + [tree.stats for tree in trees]

    def training_graph(
        self, input_data: Any, input_labels: Any, num_trainers: int = 1, trainer_id: int = 0,
        **tree_kwargs: Any,
    ) -> Any:  # fmt: skip
        """Makes what adds a batch to the forest.

        Args:
            input_data: a matrix of features, a SparseTensor, or a dictionary of both.
            input_labels: a class for each example, or its numbers.
            num_trainers: how many trainers share the trees.
            trainer_id: which of them this is.
            **tree_kwargs: what each tree's graph is given, as `input_weights`.

        Returns:
            An operation.

        Raises:
            NotImplementedError: examples or features are to be left out of sparse ones.
        """
        dense, sparse, spec = parsed_features(input_data)
        labels = parsed_labels(input_labels)
        each = self.params.num_trees / num_trainers
        steps = []
        for i in range(int(trainer_id * each), int((trainer_id + 1) * each)):
            with self._on_device(i):
                seed = self.params.base_random_seed
                seed += i if seed else 0
                data, tree_labels = self._bag(dense, sparse, labels, seed)
                data, columns = self._features(i, data, sparse, spec)
                steps.append(
                    self.trees[i].training_graph(
                        data, tree_labels, seed, data_spec=columns, sparse_features=sparse,
                        **tree_kwargs,
                    )
                )  # fmt: skip
        return tf.group(*steps, name="train")

    def _bag(self, dense: Any, sparse: Any, labels: Any, seed: int) -> tuple[Any, Any]:
        """The examples that a tree sees of a batch."""
        share = self.params.bagging_fraction
        if share >= 1.0:
            return dense, labels
        if sparse is not None:
            raise NotImplementedError("Bagging not supported with sparse features.")
        drawn = tf.random_uniform(tf.shape(dense)[:1], seed=seed)
        seen = tf.squeeze(tf.where(drawn < share), axis=[1])
        return tf.gather(dense, seen), tf.gather(labels, seen)

    def inference_graph(self, input_data: Any, **inference_args: Any) -> tuple[Any, Any, Any]:
        """Makes what the forest predicts.

        Args:
            input_data: features in the form of those that it is trained with.
            **inference_args: what each tree's graph is given.

        Returns:
            The means of the trees' probabilities, or of their numbers; the nodes through which
            examples went, [examples, trees], with `inference_tree_paths`; and the variance.

        Raises:
            NotImplementedError: features are to be left out of sparse ones.
        """
        dense, sparse, spec = parsed_features(input_data)
        found = []
        for i, tree in enumerate(self.trees):
            with self._on_device(i):
                data, columns = self._features(i, dense, sparse, spec)
                found.append(
                    tree.inference_graph(data, columns, sparse_features=sparse, **inference_args)
                )
        probabilities, paths = zip(*found, strict=True)
        with self._on_device(0):
            count = float(self.params.num_trees)
            every = tf.stack(probabilities, axis=1)
            means = tf.div(tf.reduce_sum(every, 1), count, name="probabilities")
            tree_paths = tf.stack(paths, axis=1)
            squares = tf.reduce_sum(every * every, 1) / count
            return means, tree_paths, tf.maximum(0.0, squares - means * means)

    def average_size(self) -> Any:
        """Makes the mean number of nodes of a tree."""
        sizes = []
        for i, tree in enumerate(self.trees):
            with self._on_device(i):
                sizes.append(tree.size())
        return tf.reduce_mean(tf.cast(tf.stack(sizes), tf.float32))

    def training_loss(self, features: Any, labels: Any, name: str = "training_loss") -> Any:
        """Makes the negative of the trees' mean size, which falls while they grow."""
        return tf.negative(self.average_size(), name=name)

    def validation_loss(self, features: Any, labels: Any) -> Any:
        """Makes the same without a name of its own."""
        return tf.negative(self.average_size())

    def average_impurity(self) -> Any:
        """Makes the mean impurity of trees that tell theirs; `RandomTreeGraphs` does not."""
        impurities = []
        for i, tree in enumerate(self.trees):
            with self._on_device(i):
                impurities.append(tree.average_impurity())
        return tf.reduce_mean(tf.stack(impurities))

    def feature_importances(self) -> Any:
        """Makes each feature's share of all nodes."""
        counts = tf.reduce_sum(tf.stack([tree.feature_usage_counts() for tree in self.trees]), 0)
        return counts / tf.reduce_sum(counts)


class RandomTreeGraphs:
    """Makes the graphs of a tree.

    Args:
        variables: its resources.
        params: the forest's parameters.
        tree_num: its number.
    """

    def __init__(self, variables: Any, params: Any, tree_num: int) -> None:
        self.variables = variables
        self.params = params
        self.tree_num = tree_num

    def training_graph(
        self, input_data: Any, input_labels: Any, random_seed: int, data_spec: Any,
        sparse_features: Any = None, input_weights: Any = None,
    ) -> Any:  # fmt: skip
        """Makes what adds a batch to the tree.

        Args:
            input_data: the dense features, or None.
            input_labels: the labels.
            random_seed: the seed of its draws; 0 for one that differs each time.
            data_spec: the description of the columns.
            sparse_features: the sparse features.
            input_weights: a weight for each example; 1 when None.

        Returns:
            An operation.
        """
        weights = [] if input_weights is None else input_weights
        inputs = _inputs(input_data, sparse_features)
        params, spec = self.params.serialized_params_proto, data_spec.SerializeToString()
        tree, stats = self.variables.tree, self.variables.stats
        leaves = forest_ops.traverse_op(tree, *inputs, input_spec=spec, params=params)
        update = forest_ops.update_model_op(tree, leaves, input_labels, weights, params=params)
        finished = forest_ops.process_input_op(
            tree, stats, *inputs, input_labels, weights, leaves, random_seed=random_seed,
            input_spec=spec, params=params,
        )  # fmt: skip
        with tf.control_dependencies([update]):
            return forest_ops.grow_op(tree, stats, finished, params=params)

    def inference_graph(
        self, input_data: Any, data_spec: Any, sparse_features: Any = None
    ) -> tuple[Any, Any]:
        """Makes what the tree predicts.

        Args:
            input_data: the dense features, or None.
            data_spec: the description of the columns.
            sparse_features: the sparse features.

        Returns:
            Probabilities or numbers, and the nodes through which examples went.
        """
        predictions, paths = forest_ops.predictions_op(
            self.variables.tree,
            *_inputs(input_data, sparse_features),
            input_spec=data_spec.SerializeToString(),
            params=self.params.serialized_params_proto,
        )
        return predictions, paths

    def size(self) -> Any:
        """Makes the number of nodes."""
        return forest_ops.tree_size_op(self.variables.tree)

    def feature_usage_counts(self) -> Any:
        """Makes how many nodes test each feature."""
        return forest_ops.feature_usage_op(
            self.variables.tree, params=self.params.serialized_params_proto
        )


def _inputs(dense: Any, sparse: Any) -> tuple[Any, Any, Any, Any]:
    """The features as operations take them: what is not there is empty."""
    if sparse is None:
        return dense, [], [], []
    return ([] if dense is None else dense), sparse.indices, sparse.values, sparse.dense_shape
