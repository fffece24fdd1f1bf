"""Trees of random forests behind TF's handles: where examples end, and how leaves are split.

The tests of a tree's nodes are arrays with a cell for each node, so that all examples of a batch
walk at once. What a leaf counts to find its split is in `fertile.py`.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import checks, errors, host_ops
from opdock_cpu.philox import Philox

__all__ = ["MATCHES", "Draws", "Examples", "Params", "Test", "Tree", "holds", "split_of", "test_of"]

Array = npt.NDArray[Any]

MATCHES: Final = 4  # beside the four kinds of InequalityTest
_LEAF: Final = -1
_SPARSE_LEAVES: Final = 1  # MODEL_SPARSE_CLASSIFICATION
_SPARSE_OR_DENSE_LEAVES: Final = 3
_MATCHING: Final = "type.googleapis.com/tensorflow.decision_trees.MatchingValuesTest"
_COLUMN: Final = re.compile(r" original_type: (\d+) size: (-?\d+)\}")

Test = tuple[int, int, float]
"""A node's test: its kind, the feature and the bound; what holds goes to the left."""


class Params:
    """How a forest grows.

    Args:
        serialized: a `TensorForestParams` message.
    """

    def __init__(self, serialized: bytes) -> None:
        self.message = host_ops.forest_message("TensorForestParams", serialized)
        self.outputs = int(self.message.num_outputs)
        self.regression = bool(self.message.is_regression)

    def at_depth(self, name: str, depth: int) -> float:
        """A parameter that may depend on the depth of a leaf."""
        return _at_depth(getattr(self.message, name), name, depth)

    def of_strategy(self, strategy: str, name: str, depth: int) -> float:
        """The same of the message that a strategy has for itself."""
        return _at_depth(getattr(getattr(self.message, strategy), name), name, depth)


def _at_depth(param: Any, name: str, depth: int) -> float:
    kind = param.WhichOneof("ParamType")
    if kind == "constant_value":
        return float(param.constant_value)
    if kind == "linear":
        line = param.linear
        value = depth * line.slope + line.y_intercept
        return float(min(max(value, line.min_val), line.max_val))
    if kind == "exponential":
        curve = param.exponential
        power: float = curve.base ** (curve.depth_multiplier * depth)
        return float(curve.bias + curve.multiplier * power)
    if kind == "threshold":
        step = param.threshold
        return float(step.on_value if depth >= step.threshold else step.off_value)
    raise checks.invalid(f"The parameters of a forest do not say {name}")


class Draws:
    """Numbers that a seed gives, as TF's `SimplePhilox` draws them.

    Args:
        seed: the seed; 0 for one that differs each time.
    """

    def __init__(self, seed: int) -> None:
        self._place = Philox(seed or secrets.randbits(64))
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """A number from 0 to `bound`, which it does not reach."""
        if bound & (bound - 1) == 0:
            return self._word() & (bound - 1)
        # The lowest words are left out, so that all numbers are as likely.
        least, word = 0xFFFFFFFF % bound + 1, self._word()
        while word < least:
            word = self._word()
        return word % bound

    def _word(self) -> int:
        if not self._words:
            self._words = self._place.blocks(16).reshape(-1)[::-1].tolist()
            self._place = self._place.skip(16)
        return self._words.pop()


class Examples:
    """The features of a batch: dense columns first, those of a sparse matrix after them.

    Args:
        spec: what TF's `TensorForestDataSpec` says of the columns, as text.
        dense: the dense features [examples, columns], or an empty vector.
        indices: rows and columns of the sparse ones, in order, or an empty vector.
        values: their values.
        shape: the shape of the sparse matrix.
    """

    def __init__(
        self, spec: str, dense: Array, indices: Array, values: Array, shape: Array
    ) -> None:
        self._dense = dense if dense.ndim == 2 else None
        kinds = [_columns(part) for part in spec.partition(" sparse: ")[::2]]
        self._dense_kinds, self._sparse_kinds = kinds
        self._keys: Array | None = None
        if indices.ndim == 2:
            self._rows, self._width = indices[:, 0], int(shape[1])
            self._columns, self._values = indices[:, 1], values
            self._keys = self._rows * self._width + self._columns
        if self._dense is not None:
            self.count = len(self._dense)
        else:
            self.count = int(shape[0]) if self._keys is not None else 0

    def values(self, rows: Array, features: Array) -> Array:
        """The values of features, one for each row; 0 where a sparse matrix has none."""
        found = np.zeros(len(rows), np.float32)
        width = 0 if self._dense is None else self._dense.shape[1]
        near = features < width
        if self._dense is not None:
            found[near] = self._dense[rows[near], features[near]]
        if self._keys is None:
            if not near.all():
                raise checks.invalid(f"Examples of {width} features have no {features.max()}")
        elif len(self._keys):
            wanted = rows[~near].astype(np.int64) * self._width + features[~near] - width
            place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            found[~near] = np.where(self._keys[place] == wanted, self._values[place], 0)
        return found

    def draw(self, row: int, draws: Draws) -> tuple[int, bool, float]:
        """One of an example's features: its number, whether it is a category, and its value."""
        width = len(self._dense_kinds)
        first = last = 0
        if self._keys is not None:
            first, last = np.searchsorted(self._rows, (row, row + 1)).tolist()
        if width + last - first == 0:
            raise checks.invalid(f"Example {row} has no features to draw one of")
        drawn = draws.below(width + last - first)
        if drawn < width:
            feature, kind = drawn, self._dense_kinds[drawn]
        else:
            feature = width + int(self._columns[first + drawn - width])
            kind = self._sparse_kinds[0]
        value = self.values(np.array([row]), np.array([feature]))
        return feature, bool(kind), float(value[0])


def _columns(spec: str) -> list[int]:
    """The types of columns, each as often as it is wide: 1 is a category."""
    found: list[int] = []
    for kind, size in _COLUMN.findall(spec):
        found += [int(kind)] * abs(int(size))
    return found


def holds(kinds: Array, values: Array, bounds: Array) -> Array:
    """Whether tests hold, element by element."""
    ways = (values <= bounds, values < bounds, values >= bounds, values > bounds)
    return np.select([kinds == i for i in range(4)], ways, values == bounds)


def split_of(test: Test) -> Any:
    """The `BinaryNode` message of a test."""
    kind, feature, bound = test
    node = host_ops.forest_message("BinaryNode")
    if kind == MATCHES:
        matching = host_ops.forest_message("MatchingValuesTest")
        matching.feature_id.id.value = str(feature)
        matching.value.add().float_value = bound
        node.custom_left_child_test.type_url = _MATCHING
        node.custom_left_child_test.value = matching.SerializeToString()
    else:
        inequality = node.inequality_left_child_test
        inequality.feature_id.id.value = str(feature)
        inequality.threshold.float_value = bound
        inequality.type = kind
    return node


def test_of(node: Any) -> Test:
    """The test that a `BinaryNode` message has."""
    which = node.WhichOneof("left_child_test")
    if which == "inequality_left_child_test":
        test = node.inequality_left_child_test
        if test.WhichOneof("FeatureSum") == "feature_id":
            return int(test.type), int(test.feature_id.id.value), float(test.threshold.float_value)
    elif node.custom_left_child_test.type_url.endswith("decision_trees.MatchingValuesTest"):
        matching = host_ops.forest_message("MatchingValuesTest", node.custom_left_child_test.value)
        if len(matching.value) == 1 and not matching.inverse:
            return MATCHES, int(matching.feature_id.id.value), float(matching.value[0].float_value)
    raise errors.UnimplementedError(
        None, None,
        "A node of a random tree asks for a sum of features or for several values: tensor_forest "
        "grows no such nodes",
    )  # fmt: skip


class Tree:
    """A tree.

    Args:
        params: how it grows.
        serialized: a `Model` message; empty for one that is a leaf.
    """

    def __init__(self, params: Params, serialized: bytes) -> None:
        self.lock = threading.RLock()
        self.load(params, serialized)

    def load(self, params: Params, serialized: bytes) -> None:
        """Takes the place of what was there."""
        nodes = host_ops.forest_message("Model", serialized).decision_tree.nodes
        count = max(len(nodes), 1)
        kind = np.full(count, _LEAF, np.int8)
        feature, left, right, parent = np.zeros((4, count), np.int32)
        bound = np.zeros(count, np.float32)
        values = np.zeros((count, params.outputs), np.float32)
        for i, node in enumerate(nodes):
            which = node.WhichOneof("node_type")
            if which == "leaf":
                values[i] = _leaf_values(node.leaf, i, params.outputs)
                continue
            if which != "binary_node":
                raise checks.invalid(f"Node {i} of a random tree is neither a split nor a leaf")
            split = node.binary_node
            kind[i], feature[i], bound[i] = test_of(split)
            left[i], right[i] = split.left_child_id.value, split.right_child_id.value
            # Children stand after their parents, so a walk ends.
            if not all(i < child < count for child in (left[i], right[i])):
                raise checks.invalid(
                    f"Node {i} of a random tree cannot lead to nodes {left[i]} and {right[i]} of "
                    f"{count}"
                )
            parent[[left[i], right[i]]] = i
        self._params, self._kind, self._feature, self._bound = params, kind, feature, bound
        self._left, self._right, self._parent, self._values = left, right, parent, values

    def __len__(self) -> int:
        return len(self._kind)

    def leaves(self, examples: Examples) -> Array:
        """The leaf at which each example ends."""
        at = np.zeros(examples.count, np.int32)
        walking = np.arange(examples.count)
        while len(walking := walking[self._kind[at[walking]] != _LEAF]):
            nodes = at[walking]
            values = examples.values(walking, self._feature[nodes])
            lefts = holds(self._kind[nodes], values, self._bound[nodes])
            at[walking] = np.where(lefts, self._left[nodes], self._right[nodes])
        return at

    def predictions(self, leaves: Array) -> Array:
        """What leaves say of examples: shares of classes, or means."""
        found = self._values[leaves]
        if not self._params.regression:
            total = found.sum(1, keepdims=True)
            np.divide(found, total, out=found, where=total > 0)
        return found

    def add(self, leaves: Array, labels: Array, weights: Array) -> None:
        """Counts examples of classes at their leaves."""
        np.add.at(self._values, (leaves, labels), weights)

    def usage(self) -> Array:
        """How many nodes test each feature."""
        used = self._feature[self._kind != _LEAF]
        count = int(self._params.message.num_features)
        if (used >= count).any():
            raise checks.invalid(f"A tree tests feature {used.max()} of {count}")
        return np.bincount(used, minlength=count).astype(np.int32)

    def split(self, splits: Iterable[tuple[int, Test, Array, Array]]) -> None:
        """Splits leaves.

        Args:
            splits: for each its leaf, the test, and the values of the new leaves. The first gets
                the two numbers after the last node's, and so on.
        """
        found = list(splits)
        if not found:
            return
        new = 2 * len(found)
        first = len(self)
        self._kind = np.concatenate([self._kind, np.full(new, _LEAF, np.int8)])
        self._feature, self._left, self._right, self._parent = (
            np.concatenate([old, np.zeros(new, np.int32)])
            for old in (self._feature, self._left, self._right, self._parent)
        )
        self._bound = np.concatenate([self._bound, np.zeros(new, np.float32)])
        self._values = np.concatenate(
            [self._values, *(np.stack(pair) for _, _, *pair in found)]
        ).astype(np.float32)
        for i, (node, test, _, _) in enumerate(found):
            children = [first + 2 * i, first + 2 * i + 1]
            self._kind[node], self._feature[node], self._bound[node] = test
            self._left[node], self._right[node] = children
            self._parent[children] = node

    def serialized(self) -> bytes:
        """The tree as a `Model` message."""
        model = host_ops.forest_message("Model")
        model.decision_tree.nodes.extend(self._message(i) for i in range(len(self)))
        text: bytes = model.SerializeToString()
        return text

    def path(self, leaf: int) -> bytes:
        """The nodes from the root to a leaf, as a `TreePath` message."""
        nodes = [leaf]
        while nodes[-1]:
            nodes.append(int(self._parent[nodes[-1]]))
        path = host_ops.forest_message("TreePath")
        path.nodes_visited.extend(self._message(i) for i in reversed(nodes))
        text: bytes = path.SerializeToString()
        return text

    def _message(self, i: int) -> Any:
        node = host_ops.forest_message("TreeNode")
        node.node_id.value = i
        if self._kind[i] == _LEAF:
            self._fill_leaf(node.leaf, self._values[i])
            return node
        test = int(self._kind[i]), int(self._feature[i]), float(self._bound[i])
        node.binary_node.CopyFrom(split_of(test))
        node.binary_node.left_child_id.value = int(self._left[i])
        node.binary_node.right_child_id.value = int(self._right[i])
        return node

    def _fill_leaf(self, leaf: Any, values: Array) -> None:
        if self._params.message.leaf_type in (_SPARSE_LEAVES, _SPARSE_OR_DENSE_LEAVES):
            leaf.sparse_vector.SetInParent()
            for i in np.flatnonzero(values).tolist():
                leaf.sparse_vector.sparse_value[i].float_value = float(values[i])
            return
        leaf.vector.SetInParent()
        for value in values.tolist():
            leaf.vector.value.add().float_value = value


def _leaf_values(leaf: Any, number: int, outputs: int) -> Array:
    values = np.zeros(outputs, np.float32)
    if leaf.WhichOneof("leaf") == "sparse_vector":
        given = {i: each.float_value for i, each in leaf.sparse_vector.sparse_value.items()}
    else:
        given = {i: each.float_value for i, each in enumerate(leaf.vector.value)}
    if given and not 0 <= min(given) <= max(given) < outputs:
        raise checks.invalid(f"Leaf {number} of a random tree has values {sorted(given)}")
    values[list(given)] = list(given.values())
    return values
