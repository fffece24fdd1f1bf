"""How forests grow: their parameters, and the message that their operations are given."""

from __future__ import annotations

import importlib
import math
import numbers
import random
from pathlib import Path
from typing import Any, Final

from google.protobuf import text_format

__all__ = ["ForestHParams", "build_params_proto", "parse_number_or_string_to_proto"]

messages: Any = importlib.import_module("opdock.io.forest_messages")

# Name -> how a leaf keeps what it predicts, and how it counts to find its split.
CLASSIFICATION_LEAF_MODEL_TYPES: Final = {
    "all_dense": (messages.MODEL_DENSE_CLASSIFICATION, messages.STATS_DENSE_GINI),
    "all_sparse": (messages.MODEL_SPARSE_CLASSIFICATION, messages.STATS_SPARSE_GINI),
    "sparse_then_dense": (
        messages.MODEL_SPARSE_OR_DENSE_CLASSIFICATION,
        messages.STATS_SPARSE_THEN_DENSE_GINI,
    ),
}
REGRESSION_MODEL_TYPE: Final = (
    messages.MODEL_REGRESSION,
    messages.STATS_LEAST_SQUARES_REGRESSION,
    messages.COLLECTION_BASIC,
)
FINISH_TYPES: Final = {
    "basic": messages.SPLIT_FINISH_BASIC,
    "hoeffding": messages.SPLIT_FINISH_DOMINATE_HOEFFDING,
    "bootstrap": messages.SPLIT_FINISH_DOMINATE_BOOTSTRAP,
}
PRUNING_TYPES: Final = {
    "none": messages.SPLIT_PRUNE_NONE,
    "half": messages.SPLIT_PRUNE_HALF,
    "quarter": messages.SPLIT_PRUNE_QUARTER,
    "10_percent": messages.SPLIT_PRUNE_10_PERCENT,
    "hoeffding": messages.SPLIT_PRUNE_HOEFFDING,
}
SPLIT_TYPES: Final = {
    "less_or_equal": messages.InequalityTest.LESS_OR_EQUAL,
    "less": messages.InequalityTest.LESS_THAN,
}


def parse_number_or_string_to_proto(proto: Any, param: Any) -> None:
    """Sets a `DepthDependentParam`.

    Args:
        proto: the message.
        param: a number, digits, or the message as text.
    """
    if isinstance(param, numbers.Number):
        proto.constant_value = param
    elif param.isdigit():
        proto.constant_value = int(param)
    else:
        text_format.Merge(param, proto)


def build_params_proto(params: Any) -> Any:
    """The `TensorForestParams` message of parameters that are filled.

    Args:
        params: a `ForestHParams` after `fill`.
    """
    proto = messages.TensorForestParams(
        num_trees=params.num_trees,
        max_nodes=params.max_nodes,
        is_regression=params.regression,
        num_outputs=params.num_classes,
        num_features=params.num_features,
        leaf_type=params.leaf_model_type,
        stats_type=params.stats_model_type,
        collection_type=messages.COLLECTION_BASIC,
        inequality_test_type=params.split_type,
        collate_examples=params.collate_examples,
        checkpoint_stats=params.checkpoint_stats,
        use_running_stats_method=params.use_running_stats_method,
        initialize_average_splits=params.initialize_average_splits,
        inference_tree_paths=params.inference_tree_paths,
    )
    proto.pruning_type.type = params.pruning_type
    proto.finish_type.type = params.finish_type
    for field, value in (
        (proto.pruning_type.prune_every_samples, params.prune_every_samples),
        (proto.finish_type.check_every_steps, params.early_finish_check_every_samples),
        (proto.split_after_samples, params.split_after_samples),
        (proto.num_splits_to_consider, params.num_splits_to_consider),
    ):
        parse_number_or_string_to_proto(field, value)
    proto.dominate_fraction.constant_value = params.dominate_fraction
    if params.param_file:
        text_format.Merge(Path(params.param_file).read_text(encoding="utf-8"), proto)
    return proto


class ForestHParams:
    """Parameters of a forest; `num_classes` and `num_features` have to be among them.

    Those that may depend on the depth of a leaf (`split_after_samples`, `num_splits_to_consider`,
    `prune_every_samples`, `early_finish_check_every_samples`) are numbers, digits, or the text of a
    `DepthDependentParam` message.

    Args:
        num_trees: how many trees there are.
        max_nodes: how many nodes a tree may have.
        bagging_fraction: the share of a batch that each tree sees.
        num_splits_to_consider: how many candidates a leaf has for its split; 0 for the root of
            the number of features, at least 10 and at most 1000.
        feature_bagging_fraction: the share of the features that each tree sees.
        max_fertile_nodes: without a meaning.
        split_after_samples: how much weight a leaf sees before it is split.
        valid_leaf_threshold: without a meaning.
        dominate_method: without a meaning.
        dominate_fraction: how sure the best candidate has to be to win early.
        model_name: how leaves keep classes, 'all_dense' or 'all_sparse'.
        split_finish_name: when a leaf is split early: 'basic' (never), 'hoeffding', 'bootstrap'.
        split_pruning_name: which candidates are given up: 'none', 'half', 'quarter', '10_percent',
            'hoeffding'.
        prune_every_samples: how much weight lies between two of these times; 0 for half of
            `split_after_samples`.
        early_finish_check_every_samples: how much weight lies between two looks at whether a leaf
            is split early; 0 for a quarter of `split_after_samples`.
        collate_examples: whether the examples of a batch are taken leaf by leaf.
        checkpoint_stats: whether checkpoints keep the counts of leaves too.
        use_running_stats_method: how impurities are summed, which is without effect here.
        initialize_average_splits: whether bounds lie midway between examples of two classes.
        inference_tree_paths: whether predictions say through which nodes an example went.
        param_file: a file with a `TensorForestParams` message as text, which wins.
        split_name: what goes to the left of a bound, 'less_or_equal' or 'less'.
        **kwargs: others, which become attributes: `num_classes`, `num_features`, `regression`,
            `base_random_seed`.
    """

    def __init__(
        self, num_trees: int = 100, max_nodes: int = 10000, bagging_fraction: float = 1.0,
        num_splits_to_consider: Any = 0, feature_bagging_fraction: float = 1.0,
        max_fertile_nodes: int = 0, split_after_samples: Any = 250, valid_leaf_threshold: int = 1,
        dominate_method: str = "bootstrap", dominate_fraction: float = 0.99,
        model_name: str = "all_dense", split_finish_name: str = "basic",
        split_pruning_name: str = "none", prune_every_samples: Any = 0,
        early_finish_check_every_samples: Any = 0, collate_examples: bool = False,
        checkpoint_stats: bool = False, use_running_stats_method: bool = False,
        initialize_average_splits: bool = False, inference_tree_paths: bool = False,
        param_file: str | None = None, split_name: str = "less_or_equal", **kwargs: Any,
    ) -> None:  # fmt: skip
        given = {name: value for name, value in locals().items() if name not in ("self", "kwargs")}
        self.__dict__.update({**given, **kwargs})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} was not given {name!r}")

    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return self.__dict__

    def fill(self) -> ForestHParams:
        """Sets what follows from the others, and gives itself."""
        self._fill_features()
        self.regression = getattr(self, "regression", False)
        self.num_outputs = self.num_classes if self.regression else 1
        self.num_output_columns = self.num_classes + 1
        root = math.floor(math.sqrt(self.num_features))
        given: Any = self.__dict__["num_splits_to_consider"]
        self.num_splits_to_consider = given or min(max(10, root), 1000)
        self.base_random_seed = getattr(self, "base_random_seed", 0)
        leaf, stats = (
            REGRESSION_MODEL_TYPE[:2]
            if self.regression
            else CLASSIFICATION_LEAF_MODEL_TYPES[self.model_name]
        )
        self.leaf_model_type, self.stats_model_type = leaf, stats
        self.finish_type = FINISH_TYPES["basic" if self.regression else self.split_finish_name]
        self.pruning_type = PRUNING_TYPES[self.split_pruning_name]
        self.prune_every_samples = self._every(
            "prune_every_samples", messages.SPLIT_PRUNE_NONE, self.pruning_type, 2
        )
        self.early_finish_check_every_samples = self._every(
            "early_finish_check_every_samples", messages.SPLIT_FINISH_BASIC, self.finish_type, 4
        )
        self.split_type = SPLIT_TYPES[self.split_name]
        return self

    def _fill_features(self) -> None:
        self.bagged_num_features = int(self.feature_bagging_fraction * self.num_features)
        self.bagged_features: list[list[int]] | None = None
        if self.feature_bagging_fraction < 1.0:
            self.bagged_features = [
                random.sample(range(self.num_features), self.bagged_num_features)
                for _ in range(self.num_trees)
            ]

    def _every(self, name: str, none: int, kind: int, parts: int) -> Any:
        """How much weight lies between two looks: what was given, or a part of a leaf's."""
        if kind == none:
            return 0
        if given := getattr(self, name):
            return given
        whole = self.split_after_samples
        if not (isinstance(whole, numbers.Number) or whole.isdigit()):
            raise ValueError(f"{name} has to be given where split_after_samples depends on depth")
        return int(whole) / parts
