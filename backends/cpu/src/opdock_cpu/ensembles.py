"""Ensembles of decision trees behind TF's handles: what they predict, and how they grow."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import checks, host_ops

__all__ = ["INEQUALITY", "POST_PRUNING", "PRE_PRUNING", "Ensemble", "Split"]

Array = npt.NDArray[Any]

PRE_PRUNING: Final = 1
POST_PRUNING: Final = 2
INEQUALITY: Final = b"INEQUALITY_DEFAULT_LEFT"
_DEFAULT_RIGHT: Final = b"INEQUALITY_DEFAULT_RIGHT"
_EQUALITY: Final = b"EQUALITY_DEFAULT_RIGHT"
_LEAF, _BUCKETS, _CATEGORY = range(3)
_SPLITS: Final = {"bucketized_split": _BUCKETS, "categorical_split": _CATEGORY}


@dataclass(frozen=True)
class Split:
    """A node's split into two leaves.

    Attributes:
        feature: the feature's number.
        gain: what it gains.
        threshold: the last bucket on the left, or the value on the left.
        dimension: the feature's dimension.
        left: what the left leaf adds to the node's value.
        right: what the right leaf adds.
        kind: a name of TF's `SplitTypeWithDefault`.
    """

    feature: int
    gain: np.float32
    threshold: int
    dimension: int
    left: np.float32
    right: np.float32
    kind: bytes


class _Walk:
    """A tree as arrays with a cell for each node."""

    def __init__(self, tree: Any, number: int, features: int, logits: int) -> None:
        count = len(tree.nodes)
        self.kind = np.full(count, _LEAF, np.int8)
        self.feature, self.threshold, self.left, self.right = np.zeros((4, count), np.int32)
        self.values = np.zeros((count, logits), np.float32)
        for i, node in enumerate(tree.nodes):
            which = node.WhichOneof("node")
            value = _value(node)
            if value:
                if len(value) != logits:
                    raise checks.invalid(
                        f"Node {i} of tree {number} has {len(value)} logits, expected {logits}"
                    )
                self.values[i] = value
            if which == "leaf":
                continue
            if which not in _SPLITS:
                raise checks.invalid(f"Node {i} of tree {number} is neither a split nor a leaf")
            self._add_split(i, number, which, getattr(node, which), features)

    def _add_split(self, i: int, number: int, which: str, split: Any, features: int) -> None:
        # Children stand after their parents, so a walk ends.
        if not all(i < child < len(self.kind) for child in (split.left_id, split.right_id)):
            raise checks.invalid(
                f"Node {i} of tree {number} cannot lead to nodes {split.left_id} and "
                f"{split.right_id} of {len(self.kind)}"
            )
        if not 0 <= split.feature_id < features:
            raise checks.invalid(
                f"Node {i} of tree {number} asks for feature {split.feature_id} of {features}"
            )
        self.kind[i] = _SPLITS[which]
        self.feature[i], self.left[i], self.right[i] = (
            split.feature_id, split.left_id, split.right_id,
        )  # fmt: skip
        self.threshold[i] = split.threshold if which == "bucketized_split" else split.value

    def step(self, nodes: Array, features: Array) -> Array:
        """Where examples go from nodes that are splits: `features` has a column for each."""
        values = features[self.feature[nodes], np.arange(len(nodes))]
        limits = self.threshold[nodes]
        to_left = np.where(self.kind[nodes] == _BUCKETS, values <= limits, values == limits)
        return np.where(to_left, self.left[nodes], self.right[nodes])

    def leaves(self, nodes: Array, features: Array) -> Array:
        """The leaves that examples reach from nodes."""
        nodes = nodes.copy()
        open_ = np.flatnonzero(self.kind[nodes] != _LEAF)
        while len(open_):
            nodes[open_] = self.step(nodes[open_], features[:, open_])
            open_ = open_[self.kind[nodes[open_]] != _LEAF]
        return nodes


def _value(node: Any) -> list[float]:
    """The logits of a node: a leaf's, or those that a split had as a leaf."""
    if node.WhichOneof("node") == "leaf":
        leaf = node.leaf
    elif node.metadata.HasField("original_leaf"):
        leaf = node.metadata.original_leaf
    else:
        return []
    return list(leaf.vector.value) if leaf.HasField("vector") else [leaf.scalar]


def _child_ids(node: Any) -> tuple[int, int]:
    split = getattr(node, node.WhichOneof("node"))
    return split.left_id, split.right_id


class Ensemble:
    """Trees, their weights, and how far they have grown: a `TreeEnsemble` message.

    Attributes:
        lock: whoever reads or changes it holds it.
        stamp: a number that each change raises.
    """

    def __init__(self, serialized: bytes, stamp: int) -> None:
        self.lock = threading.RLock()
        self.load(serialized, stamp)

    # ------------------------------------------------------------ as a whole
    def load(self, serialized: bytes, stamp: int) -> None:
        """Takes another ensemble's place.

        Raises:
            InvalidArgumentError: the text is no ensemble.
        """
        message = host_ops.tree_ensemble(serialized)
        if len(message.trees) != len(message.tree_weights):
            raise checks.invalid(
                f"Unable to parse tree ensemble proto: {len(message.trees)} trees have "
                f"{len(message.tree_weights)} weights"
            )
        while len(message.tree_metadata) < len(message.trees):  # which is enough to predict with
            message.tree_metadata.add()
        self._message, self.stamp = message, stamp
        self._walks: dict[tuple[int, int, int], _Walk] = {}

    def serialized(self) -> bytes:
        """The message."""
        data: bytes = self._message.SerializeToString(deterministic=True)
        return data

    def states(self) -> tuple[int, int, int, int, tuple[int, int]]:
        """The stamp, the trees, those finished, the layers tried, and the last layer's nodes."""
        trees, growing = len(self._message.trees), self._message.growing_metadata
        finished = trees
        if trees and not self._message.tree_metadata[-1].is_finalized:
            finished -= 1
        nodes = (growing.last_layer_node_start, max(1, growing.last_layer_node_end))
        return self.stamp, trees, finished, growing.num_layers_attempted, nodes

    def _walk(self, tree: int, features: int, logits: int) -> _Walk:
        key = (tree, features, logits)
        found = self._walks.get(key)
        if found is None:
            found = self._walks[key] = _Walk(self._message.trees[tree], *key)
        return found

    def _changed(self, tree: int) -> None:
        self._walks = {key: walk for key, walk in self._walks.items() if key[0] != tree}

    # ------------------------------------------------------------ predictions
    def predict(self, features: Array, logits: int) -> Array:
        """The logits of examples.

        Args:
            features: buckets, a row for each feature, a column for each example.
            logits: how many a leaf has.
        """
        total = np.zeros((features.shape[1], logits), np.float32)
        for tree, weight in enumerate(self._message.tree_weights):
            walk = self._walk(tree, len(features), logits)
            leaves = walk.leaves(np.zeros(len(total), np.int32), features)
            total += np.float32(weight) * walk.values[leaves]
        return total

    def predict_from(
        self, trees: Array, nodes: Array, features: Array, logits: int
    ) -> tuple[Array, Array, Array]:
        """What has been added to logits since examples were at these nodes; -1 is none yet.

        Returns:
            The sums, and the trees and nodes where the examples are now.
        """
        latest = len(self._message.trees) - 1
        total = np.zeros((len(nodes), logits), np.float32)
        if latest < 0:
            return total, trees.copy(), np.zeros_like(nodes)
        if len(trees) and not (trees.min() >= 0 and trees.max() <= latest):
            raise checks.invalid(f"cached_tree_ids must be in [0, {latest}]")
        partial = np.zeros_like(total)
        nodes = np.where(nodes < 0, 0, self._where_pruned(trees, nodes, partial, len(features)))
        for tree in range(int(trees.min(initial=latest)), latest + 1):
            here = np.flatnonzero(trees <= tree)  # those who were in an earlier one are at the root
            nodes[here] = np.where(trees[here] == tree, nodes[here], 0)
            walk = self._walk(tree, len(features), logits)
            nodes[here] = walk.leaves(nodes[here], features[:, here])
            weight = np.float32(self._message.tree_weights[tree])
            total[here] += weight * (partial[here] + walk.values[nodes[here]])
            partial[here] = 0
        return total, np.full_like(trees, latest), nodes

    def _where_pruned(self, trees: Array, nodes: Array, partial: Array, features: int) -> Array:
        """Where nodes are since trees were pruned; what they were worth goes off `partial`."""
        out = nodes.copy()
        for tree in np.unique(trees[nodes >= 0]):
            here = np.flatnonzero((trees == tree) & (nodes >= 0))
            meta = self._message.tree_metadata[tree]
            if meta.is_finalized and meta.post_pruned_nodes_meta:
                moved = meta.post_pruned_nodes_meta
                _check_below("cached_node_ids", nodes[here], len(moved))
                out[here] = [moved[i].new_node_id for i in nodes[here]]
                partial[here] += np.array([moved[i].logit_change for i in nodes[here]], np.float32)
            walk = self._walk(int(tree), features, partial.shape[1])
            _check_below("cached_node_ids", out[here], len(walk.kind))
            partial[here] -= walk.values[out[here]]
        return out

    def explain(self, features: Array) -> list[bytes]:
        """For each example the features it was split by and the logit after each split."""
        message, walks = self._message, range(len(self._message.trees))
        out = []
        for example in range(features.shape[1]):
            column = features[:, example : example + 1]
            shown, past = host_ops.tree_debug_output(), np.float32(0)
            for tree in walks:
                walk = self._walk(tree, len(features), 1)
                weight, node = np.float32(message.tree_weights[tree]), np.zeros(1, np.int32)
                logit = weight * walk.values[0, 0]
                if tree == 0:
                    shown.logits_path.append(logit)
                while walk.kind[node[0]] != _LEAF:
                    shown.feature_ids.append(int(walk.feature[node[0]]))
                    node = walk.step(node, column)
                    logit = weight * walk.values[node[0], 0]
                    shown.logits_path.append(logit + past)
                if tree == 0 or node[0] > 0:  # a tree that is its root alone adds nothing yet
                    past += logit
            out.append(shown.SerializeToString(deterministic=True))
        return out

    # ------------------------------------------------------------ growth
    def add_tree(self, logit: float) -> int:
        """Adds a tree of one leaf; its number."""
        message = self._message
        message.trees.add().nodes.add().leaf.scalar = logit
        message.tree_weights.append(1.0)
        message.tree_metadata.add()
        return len(message.trees) - 1

    def center(self, logit: np.float32) -> bool:
        """Adds to the first tree's root; whether that changed it by much."""
        self.stamp += 1
        if not self._message.trees:
            self.add_tree(float(logit))
            return True
        root = self._message.trees[0].nodes[0]
        current = np.float32((_value(root) or [0.0])[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            goes_on = bool(abs(logit / current) > np.float32(0.01))
        root.leaf.scalar = float(current + logit)
        self._changed(0)
        return goes_on

    def grow(self, splits: Mapping[int, Split], max_depth: int, pruning: int) -> bool:
        """Splits leaves of the last tree; a tree that is deep enough is finished.

        Args:
            splits: by node.
            max_depth: how many layers a tree gets.
            pruning: 0, or PRE_PRUNING or POST_PRUNING.

        Returns:
            Whether there were splits to consider.
        """
        message, growing = self._message, self._message.growing_metadata
        self.stamp += 1
        self._count_attempt()
        tree = len(message.trees) - 1 if message.trees else self.add_tree(0.0)
        if not splits:
            return False
        nodes, meta = message.trees[tree].nodes, message.tree_metadata[tree]
        first = len(nodes)
        for node, split in sorted(splits.items()):
            if pruning == PRE_PRUNING and split.gain < 0:
                continue
            self._split(nodes, node, split)
        if len(nodes) == first:
            return True
        self._changed(tree)
        last = len(nodes)
        meta.num_layers_grown += 1
        if meta.num_layers_grown >= max_depth:
            first, last = 0, 1  # the next layer begins at a new tree's root
            meta.is_finalized = True
            if pruning == POST_PRUNING:
                self._prune(tree)
            self.add_tree(0.0)
        growing.last_layer_node_start, growing.last_layer_node_end = first, last
        return True

    def _count_attempt(self) -> None:
        message, growing = self._message, self._message.growing_metadata
        growing.num_layers_attempted += 1
        trees = len(message.trees)
        at_root = trees > 0 and len(message.trees[-1].nodes) == 1
        if not trees or (at_root and (trees == 1 or message.tree_metadata[-2].is_finalized)):
            growing.num_trees_attempted += 1

    @staticmethod
    def _split(nodes: Any, index: int, split: Split) -> None:
        _check_below("node_ids", np.array([index]), len(nodes))
        node = nodes[index]
        if node.WhichOneof("node") not in ("leaf", None):
            raise checks.invalid(f"Node {index} has been split already")
        value = np.float32(node.leaf.scalar)
        original = index != 0 or (node.HasField("leaf") and value != 0)
        if original:
            node.metadata.original_leaf.CopyFrom(node.leaf)
        node.metadata.gain = float(split.gain)
        left = len(nodes)
        for added in (split.left, split.right):
            nodes.add().leaf.scalar = float(value + added)
        if split.kind == _EQUALITY:
            made = node.categorical_split
            made.value = split.threshold
        else:
            made = node.bucketized_split
            made.threshold = split.threshold
            made.default_direction = int(split.kind == _DEFAULT_RIGHT)
        made.feature_id, made.dimension_id = split.feature, split.dimension
        made.left_id, made.right_id = left, left + 1

    # ------------------------------------------------------------ pruning
    def _prune(self, tree: int) -> None:
        """Takes back splits that lose, from the leaves on; notes what became of each node."""
        nodes = self._message.trees[tree].nodes
        moved: dict[int, tuple[int, np.float32]] = {}
        self._collapse(nodes, 0, moved)
        if not moved:
            return
        kept = [i for i in range(len(nodes)) if i not in moved]
        place = {old: new for new, old in enumerate(kept)}
        metas = self._message.tree_metadata[tree].post_pruned_nodes_meta
        for i in range(len(nodes)):
            change, at = np.float32(0), i
            while at in moved:
                at, step = moved[at]
                change += step
            metas.add(new_node_id=place[at], logit_change=[float(change)])
        remaining = [nodes[i] for i in kept]
        for node in remaining:
            which = node.WhichOneof("node")
            if which in _SPLITS:
                split = getattr(node, which)
                split.left_id, split.right_id = place[split.left_id], place[split.right_id]
        copies = [type(node).FromString(node.SerializeToString()) for node in remaining]
        del nodes[:]
        nodes.extend(copies)
        self._changed(tree)

    def _collapse(self, nodes: Any, index: int, moved: dict[int, tuple[int, np.float32]]) -> None:
        node = nodes[index]
        if node.WhichOneof("node") not in _SPLITS:
            return
        children = _child_ids(node)
        for child in children:
            self._collapse(nodes, child, moved)
        if node.metadata.gain >= 0 or any(nodes[c].WhichOneof("node") != "leaf" for c in children):
            return
        node.leaf.CopyFrom(node.metadata.original_leaf)
        value = np.float32(node.leaf.scalar)
        for child in children:
            moved[child] = (index, value - np.float32(nodes[child].leaf.scalar))
        node.ClearField("metadata")


def _check_below(name: str, given: Array | Sequence[int], limit: int) -> None:
    values = np.asarray(given)
    wrong = values[(values < 0) | (values >= limit)]
    if len(wrong):
        raise checks.invalid(f"{name} must be in [0, {limit}), got {int(wrong[0])}")
