"""What every column of `tf.contrib.layers` is.

These columns came before those of `tf.feature_column`, and read a dictionary in which both the
features and what columns made of them stand. A column says what it makes in one place,
`transformed`, which asks for what it needs; so it serves as a column of `tf.feature_column` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from opdock import shapes
from opdock.api import logging
from opdock.feature_column import base
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.composed.check_static import assert_rank_at_least
from opdock.ops.composed.sparse import sparse_reshape
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_prod

Get = Callable[[Any], Any]
_RANKS = (
    "Rank of input Tensor ({}) should be the same as output_rank ({}). For example, sequence data "
    "should typically be 3 dimensional (rank 3) while non-sequence data is typically 2 "
    "dimensional (rank 2)."
)


class LinearLookup(NamedTuple):
    """What a linear model looks up for a column."""

    input_tensor: Any
    weight_tensor: Any
    vocab_size: int
    initializer: Any
    combiner: str


class DeepLookup(NamedTuple):
    """What the input layer of a network looks up for a column."""

    input_tensor: Any
    weight_tensor: Any
    vocab_size: int
    initializer: Any
    combiner: str
    dimension: int
    shared_embedding_name: str | None
    hash_key: int | None
    max_norm: float | None
    trainable: bool


class FeatureColumn(base.FeatureColumn):
    """How one feature is parsed, transformed and put into a model; its fields are a tuple's."""

    @property
    def config(self) -> dict[str, Any]:
        """Feature key -> what `tf.parse_example` needs to know of it."""
        raise NotImplementedError(f"No parsing is known for column {self}.")

    @property
    def key(self) -> str:
        """What columns are sorted by: the class and its fields."""
        return str(self)

    def transformed(self, get: Get) -> Any:
        """What the column makes of features and of other columns' values, which `get` gives."""
        raise NotImplementedError(f"Transform is not implemented for {self}.")

    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        """Adds what the column makes, and what it is made from, to the dictionary of features.

        Raises:
            ValueError: a feature is not there.
        """
        columns_to_tensors[self] = self.transformed(lambda key: _made(columns_to_tensors, key))

    def _to_dnn_input_layer(
        self,
        input_tensor: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        output_rank: int = 2,
    ) -> Tensor:
        """The transformed feature as a tensor for the first layer of a network."""
        return self.for_network(input_tensor, output_rank)

    def for_network(self, made: Any, output_rank: int) -> Tensor:
        """What the column made as a tensor for the first layer of a network."""
        raise ValueError("Calling an abstract method.")

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup:
        raise NotImplementedError(f"No deep embedding lookup arguments for column {self}.")

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> LinearLookup:
        raise NotImplementedError(f"No wide embedding lookup arguments for column {self}.")

    def _to_dense_tensor(self, input_tensor: Any) -> Tensor:
        raise NotImplementedError(f"No dense tensor representation for column {self}.")

    def _checkpoint_path(self) -> tuple[str, str] | None:
        """The checkpoint, and the tensor in it, that the weights start from."""
        return None

    def _key_without(self, *left_out: str) -> str:
        """The key, without fields such as functions, whose texts differ between runs."""
        names: Sequence[str] = self._fields  # type: ignore[attr-defined]
        told = [f"{n}={getattr(self, n)!s}" for n in names if n not in left_out]
        return f"_{type(self).__name__}({', '.join(told)})"

    def __repr__(self) -> str:
        names: Sequence[str] = self._fields  # type: ignore[attr-defined]
        told = ", ".join(f"{n}={getattr(self, n)!r}" for n in names)
        return f"_{type(self).__name__}({told})"

    # ------------------------------------------------------------ as a column of tf.feature_column
    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """`config`."""
        return self.config

    @property
    def parents(self) -> list[Any]:
        """The keys of its features."""
        return list(self.config)

    @property
    def _is_v2_column(self) -> bool:
        return False

    def transform_feature(
        self,
        transformation_cache: base.FeatureTransformationCache,
        state_manager: base.StateManager | None,
    ) -> Any:
        """What the column makes of the cache's features."""
        return self.transformed(lambda key: transformation_cache.get(key, state_manager))


class IdColumn(FeatureColumn, base.CategoricalColumn):
    """A column whose value is ids, and perhaps weights."""

    # How messages call the kind of column, and what networks can have of it.
    kind: ClassVar[str]
    in_networks: ClassVar[str] = "embedding_column or one_hot_column"

    @property
    def length(self) -> int:
        """The number of ids."""
        raise NotImplementedError

    @property
    def num_buckets(self) -> int:
        return self.length

    def id_tensor(self, input_tensor: Any) -> Any:
        """The ids in what the column made."""
        return input_tensor

    def weight_tensor(self, input_tensor: Any) -> Any:
        """The weights in what the column made; None for 1."""
        return None

    def joined_by(self) -> str:
        """How a linear model joins the weights of one example."""
        return "sum"

    def for_network(self, made: Any, output_rank: int) -> Tensor:
        raise ValueError(
            f"{self.kind} is not supported in DNN. Please use {self.in_networks}. column: {self}"
        )

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> LinearLookup:
        return LinearLookup(
            self.id_tensor(input_tensor), self.weight_tensor(input_tensor), self.num_buckets,
            zeros_initializer(), self.joined_by(),
        )  # fmt: skip

    def get_sparse_tensors(
        self,
        transformation_cache: base.FeatureTransformationCache,
        state_manager: base.StateManager | None,
    ) -> base.IdsAndWeights:
        made = transformation_cache.get(self, state_manager)
        return base.IdsAndWeights(self.id_tensor(made), self.weight_tensor(made))


class VectorColumn(FeatureColumn, base.DenseColumn):
    """A column whose value is vectors of one length."""

    def get_dense_tensor(
        self,
        transformation_cache: base.FeatureTransformationCache,
        state_manager: base.StateManager | None,
    ) -> Tensor:
        return self.vectors(transformation_cache.get(self, state_manager))

    def vectors(self, made: Any) -> Tensor:
        """What the column made as vectors."""
        return self.for_network(made, output_rank=2)


class SavedColumn(FeatureColumn):
    """A column whose weights may start from a tensor of a checkpoint."""

    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None

    def _checkpoint_path(self) -> tuple[str, str] | None:
        if self.ckpt_to_load_from is None or self.tensor_name_in_ckpt is None:
            return None
        return self.ckpt_to_load_from, self.tensor_name_in_ckpt


def check_saved(ckpt_to_load_from: str | None, tensor_name_in_ckpt: str | None) -> None:
    """Raises ValueError where one of the two is missing."""
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )


def with_values(sparse: SparseTensor, values: Any) -> SparseTensor:
    """Other values in the places of a sparse tensor's."""
    return SparseTensor(sparse.indices, values, sparse.dense_shape)


def _made(columns_to_tensors: dict[Any, Any], key: Any) -> Any:
    if key not in columns_to_tensors:
        if not isinstance(key, FeatureColumn):
            raise ValueError(f"features dictionary doesn't contain key ({key})")
        key.insert_transformed_feature(columns_to_tensors)
    return columns_to_tensors[key]


def inner_flatten(inputs: Any, new_rank: int) -> Any:
    """A tensor whose last dimensions are one, so that its rank is `new_rank`.

    Raises:
        ValueError: the rank is smaller than that.
    """
    with name_scope(None, "InnerFlatten", [inputs, new_rank]):
        if isinstance(inputs, SparseTensor):
            rank = inputs.dense_shape.shape.as_list()[0]
            if rank is not None and rank < new_rank:
                raise ValueError(
                    f"Inputs has rank less than new_rank. {inputs} must have rank at least "
                    f"{new_rank}. Received rank {rank}, shape {inputs.get_shape()}"
                )
            outer, inner = inputs.dense_shape[: new_rank - 1], inputs.dense_shape[new_rank - 1 :]
            return sparse_reshape(inputs, concat((outer, [reduce_prod(inner)]), 0))
        inputs = convert_to_tensor(inputs)
        with control_dependencies(
            [assert_rank_at_least(inputs, new_rank, message="inputs has rank less than new_rank")]
        ):
            outer = shape(inputs)[: new_rank - 1]
            flat = reshape(inputs, concat((outer, [-1]), 0))
        known = shapes.as_shape(inputs.shape)
        if known is not None:
            last: int | None = 1
            for size in known[new_rank - 1 :]:
                last = None if size is None or last is None else last * size
            flat.set_shape([*known[: new_rank - 1], last])
        return flat


def reshape_dense(tensor: Tensor, output_rank: int, column_name: str | None = None) -> Tensor:
    """A dense feature with the rank that is wanted: one dimension more, or inner ones flattened.

    Raises:
        ValueError: two dimensions or more are missing.
    """
    rank = tensor.shape.ndims
    if rank is not None:
        told = _RANKS.format(rank, output_rank)
        if output_rank > rank + 1:
            raise ValueError(
                told
                if column_name is None
                else f"Error while processing column {column_name}." + told
            )
        if output_rank == rank + 1:
            logging.warning("%s A dimension of size 1 is added at the end.", told)
            return expand_dims(tensor, -1, name="expand_dims")
        if output_rank == rank:
            return tensor
    flat: Tensor = inner_flatten(tensor, output_rank)
    return flat


def reshape_feature(tensor: Any, column_name: str, output_rank: int) -> Any:
    """What a column made, Tensor or SparseTensor, with the rank that is wanted.

    Raises:
        ValueError: two dimensions or more are missing.
    """
    rank = tensor.get_shape().ndims
    if rank is None or output_rank < rank:
        return tensor if rank is None else inner_flatten(tensor, output_rank)
    if output_rank > rank + 1:
        told = _RANKS.format(rank, output_rank)
        raise ValueError(f"Error while processing column {column_name}. {told}")
    if output_rank == rank:
        return tensor
    if isinstance(tensor, SparseTensor):
        return sparse_reshape(tensor, concat([tensor.dense_shape, [1]], 0))
    return expand_dims(tensor, -1)
