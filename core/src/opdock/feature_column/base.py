"""What every feature column is, and the two things it works with: features and state.

A column is a description without state. `FeatureTransformationCache` holds the features of one call
and what columns made of them, so that a feature that several columns use is transformed once;
a `StateManager` holds the variables and tables that columns need.
"""

from __future__ import annotations

import abc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.api import logging
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import SparseTensor, convert_to_tensor_or_sparse_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.variable_scope import get_variable
from opdock.ops.array import expand_dims, rank, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_positive
from opdock.ops.compare import equal, not_equal
from opdock.ops.composed.sparse import sparse_reshape
from opdock.ops.control import cond
from opdock.ops.gather import gather_nd
from opdock.ops.select import where_v2
from opdock.shapes import TensorShape, dimension_value

Features = dict[Any, Any]
_IGNORED: Final = {dtypes.string: ""}


class StateManager:
    """Variables and tables by column and name; what is made is kept, and made once."""

    def create_variable(
        self,
        feature_column: FeatureColumn,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes the variable `name` of a column and returns it."""
        raise NotImplementedError("StateManager.create_variable")

    def add_variable(self, feature_column: FeatureColumn, var: Any) -> None:
        """Keeps a variable that exists."""
        raise NotImplementedError("StateManager.add_variable")

    def get_variable(self, feature_column: FeatureColumn, name: str) -> Any:
        """The variable `name` of a column."""
        raise NotImplementedError("StateManager.get_var")

    def add_resource(self, feature_column: FeatureColumn, name: str, resource: Any) -> None:
        """Keeps a table or its like."""
        raise NotImplementedError("StateManager.add_resource")

    def get_resource(self, feature_column: FeatureColumn, name: str) -> Any:
        """The resource `name` of a column."""
        raise NotImplementedError("StateManager.get_resource")


class KeptState(StateManager):
    """A state manager over a function that makes variables.

    Args:
        make: called with `name`, `shape`, `dtype`, `initializer`, `trainable`, `use_resource`.
        trainable: False makes no variable trainable.
    """

    def __init__(self, make: Callable[..., Any] | None, trainable: bool = True) -> None:
        self._make = make
        self._trainable = trainable
        # By the names that subclasses in libraries know: Keras' DenseFeatures writes into them.
        self._cols_to_vars_map: dict[FeatureColumn, dict[str, Any]] = defaultdict(dict)
        self._cols_to_resources_map: dict[FeatureColumn, dict[str, Any]] = defaultdict(dict)

    def create_variable(
        self,
        feature_column: FeatureColumn,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes the variable and keeps it."""
        if name in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable already exists.")
        if self._make is None:
            raise ValueError(f"There is no layer to make the variable {name} of {feature_column}.")
        variable = self._make(
            name=name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=self._trainable and trainable,
            use_resource=use_resource,
        )
        self._cols_to_vars_map[feature_column][name] = variable
        return variable

    def get_variable(self, feature_column: FeatureColumn, name: str) -> Any:
        """The variable that was made for a column."""
        try:
            return self._cols_to_vars_map[feature_column][name]
        except KeyError:
            raise ValueError("Variable does not exist.") from None

    def add_resource(self, feature_column: FeatureColumn, name: str, resource: Any) -> None:
        """Keeps a resource of a column."""
        self._cols_to_resources_map[feature_column][name] = resource

    def get_resource(self, feature_column: FeatureColumn, name: str) -> Any:
        """The resource that was kept for a column."""
        try:
            return self._cols_to_resources_map[feature_column][name]
        except KeyError:
            raise ValueError("Resource does not exist.") from None


def scope_maker(weight_collections: Iterable[str] | None) -> Callable[..., Any]:
    """What makes variables in the variable scope that is open, for a state manager.

    Args:
        weight_collections: collections for them, beside GLOBAL_VARIABLES and MODEL_VARIABLES.
    """
    needed = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)
    collections = [*dict.fromkeys((*(weight_collections or ()), *needed))]

    def make(use_resource: bool, **kwargs: Any) -> Any:
        # As in TF, the scope says here whether variables are resources.
        return get_variable(collections=collections, **kwargs)

    return make


def scoped_state(weight_collections: Iterable[str] | None, trainable: bool) -> KeptState:
    """A state manager whose variables are those of variable scopes."""
    return KeptState(scope_maker(weight_collections), trainable)


class FeatureColumn(abc.ABC):
    """How one input of a model is read and prepared."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The column's name, which scopes and checkpoints use."""

    @property
    @abc.abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """Feature key -> what `tf.parse_example` needs to know of it."""

    @property
    @abc.abstractmethod
    def parents(self) -> list[Any]:
        """The columns and the keys that it is made from."""

    @abc.abstractmethod
    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        """The column's intermediate form, from the cache's features."""

    def create_state(self, state_manager: StateManager) -> None:
        """Makes the variables that the column needs; most need none."""
        del state_manager

    @property
    def _is_v2_column(self) -> bool:
        return all(p._is_v2_column for p in self.parents if isinstance(p, FeatureColumn))

    @property
    def _var_scope_name(self) -> str:
        return self.name

    # What TF calls the same where columns have no state managers, as libraries still ask for it.
    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return self.parse_example_spec

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(inputs, None)

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other)


class DenseColumn(FeatureColumn):
    """A column whose value is one dense tensor for each example."""

    @property
    @abc.abstractmethod
    def variable_shape(self) -> TensorShape:
        """The value's shape without the batch."""

    @abc.abstractmethod
    def get_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        """The value: a tensor of shape [batch, *variable_shape]."""

    @property
    def _variable_shape(self) -> TensorShape:
        return self.variable_shape

    def _get_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> Tensor:
        state = scoped_state(weight_collections, trainable is not False)
        self.create_state(state)
        return self.get_dense_tensor(inputs, state)


class IdsAndWeights(NamedTuple):
    """Ids as a SparseTensor, and their weights, or None for 1."""

    id_tensor: Any
    weight_tensor: Any


class CategoricalColumn(FeatureColumn):
    """A column whose value is a set of ids for each example."""

    IdWeightPair = IdsAndWeights

    @property
    @abc.abstractmethod
    def num_buckets(self) -> int:
        """Ids are in [0, num_buckets)."""

    def get_sparse_tensors(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> IdsAndWeights:
        """The ids, and their weights where the column has some."""
        return IdsAndWeights(transformation_cache.get(self, state_manager), None)

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def _get_sparse_tensors(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> IdsAndWeights:
        del weight_collections, trainable  # ids need no variables
        return self.get_sparse_tensors(inputs, None)


class SequenceAndLengths(NamedTuple):
    """A tensor of shape [batch, length, ...], and the length of each example."""

    dense_tensor: Any
    sequence_length: Any


class SequenceDenseColumn(FeatureColumn):
    """A column whose value is a sequence of dense tensors for each example."""

    TensorSequenceLengthPair = SequenceAndLengths

    @abc.abstractmethod
    def get_sequence_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> SequenceAndLengths:
        """The sequence and the lengths."""

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> SequenceAndLengths:
        state = scoped_state(weight_collections, trainable is not False)
        self.create_state(state)
        return self.get_sequence_dense_tensor(inputs, state)


class FeatureTransformationCache:
    """Features by key, and what columns made of them.

    A feature of rank 1 is read as a column of shape [batch, 1].

    Args:
        features: key -> Tensor, SparseTensor or what becomes one. Columns may be keys too.
    """

    def __init__(self, features: Features) -> None:
        self._features = features.copy()
        self._made: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: StateManager | None) -> Any:
        """The feature of a key, or what a column transforms it to.

        Without a state manager nobody keeps the tables that columns make.

        Raises:
            ValueError: there is no such feature, it is a scalar, or the column gives nothing.
            TypeError: `key` is neither a string nor a column.
        """
        if key not in self._made:
            self._made[key] = self._make(key, state_manager)
        return self._made[key]

    def _make(self, key: Any, state_manager: StateManager | None) -> Any:
        if key in self._features:
            return self._raw(key)
        if isinstance(key, str):
            raise ValueError(f"Feature {key} is not in features dictionary.")
        if not isinstance(key, FeatureColumn):
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        logging.debug("Transforming feature_column %s.", key)
        made = key.transform_feature(self, state_manager)
        if made is None:
            raise ValueError(f"Column {key.name} is not supported.")
        return made

    def _raw(self, key: Any) -> Any:
        feature = convert_to_tensor_or_sparse_tensor(self._features[key])
        told = f"Feature (key: {key}) cannot have rank 0. Given: {feature}"
        known = feature.get_shape().ndims
        if known == 0:
            raise ValueError(told)
        if known is not None:
            return _with_line(feature) if known == 1 else feature
        with control_dependencies([assert_positive(rank(feature), message=told)]):
            return cond(equal(1, rank(feature)), lambda: _with_line(feature), lambda: feature)


def _with_line(feature: Any) -> Any:
    if isinstance(feature, SparseTensor):
        return sparse_reshape(feature, [shape(feature)[0], 1])
    return expand_dims(feature, -1)


def to_sparse(tensor: Any, ignored: Any = None) -> SparseTensor:
    """A SparseTensor with the entries of a dense tensor that are not `ignored`.

    Args:
        tensor: a Tensor, or a SparseTensor, which is returned as it is.
        ignored: the value of missing entries: by default "" for strings, -1 for integers, else 0.
    """
    tensor = convert_to_tensor_or_sparse_tensor(tensor)
    if isinstance(tensor, SparseTensor):
        return tensor
    with name_scope(None, "to_sparse_input", (tensor, ignored)):
        if ignored is None:
            ignored = _IGNORED.get(tensor.dtype, -1 if tensor.dtype.is_integer else 0)
        absent = cast(ignored, tensor.dtype, name="ignore_value")
        indices = where_v2(not_equal(tensor, absent), name="indices")
        return SparseTensor(
            indices=indices,
            values=gather_nd(tensor, indices, name="values"),
            dense_shape=shape(tensor, out_type=dtypes.int64, name="dense_shape"),
        )


def normalized(feature_columns: Any) -> list[Any]:
    """The columns, sorted by name.

    Raises:
        ValueError: no columns, two of one name, a dictionary, or something that is no column.
    """
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, Iterator):
        feature_columns = list(feature_columns)
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    by_name: dict[str, FeatureColumn] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                "Items of feature_columns must be a _FeatureColumn. "
                f"Given (type {type(column)}): {column}."
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and "
                f"{by_name[column.name]}. Columns of one name read the same feature: leave one "
                "out, or add the feature to the features dictionary under a second name."
            )
        by_name[column.name] = column
    if not by_name:
        raise ValueError("feature_columns must not be empty.")
    return [by_name[name] for name in sorted(by_name)]


def is_feature_column_v2(feature_columns: Iterable[Any]) -> bool:
    """Whether all columns keep their variables in a `StateManager` of their own."""
    return all(isinstance(c, FeatureColumn) and c._is_v2_column for c in feature_columns)


def check_batches(tensors: list[Tensor], columns: Iterable[FeatureColumn]) -> None:
    """Raises ValueError where two columns' static batch sizes differ."""
    first: tuple[str, int] | None = None
    for tensor, column in zip(tensors, columns, strict=True):
        size = dimension_value(tensor.shape[0])
        if size is None:
            continue
        if first is None:
            first = column.name, size
        elif first[1] != size:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size of columns "
                f"({first[0]}, {column.name}): ({first[1]}, {size})"
            )


def check_key(key: Any) -> None:
    """Raises ValueError unless a feature's key is a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_string_or_int(dtype: DType, prefix: str) -> None:
    """Raises ValueError unless a type is string or an integer."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")
