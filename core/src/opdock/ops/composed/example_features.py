"""What Examples are parsed into: descriptions of features, and `tf.parse_example` and its kin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import expand_dims, rank, reshape, squeeze
from opdock.ops.check import Assert
from opdock.ops.compare import equal
from opdock.ops.identity import identity
from opdock.ops.parsing import (
    parse_example_op,
    parse_sequence_example_op,
    parse_single_example_op,
    parse_single_sequence_example_op,
)
from opdock.ops.slicing import slice
from opdock.ops.support import late
from opdock.shapes import Shape

# `parse_sequence_example` is public as tf.io.parse_sequence_example.
__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "SparseFeature", "VarLenFeature",
    "parse_example", "parse_single_example", "parse_single_sequence_example",
]  # fmt: skip


# ---------------------------------------------------------------- descriptions
class VarLenFeature(NamedTuple):
    """A feature of any number of values, parsed into a SparseTensor.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """A SparseTensor of which several features hold the indices and the values.

    Attributes:
        index_key: the feature of the indices, or a list, one for each dimension.
        value_key: the feature of the values.
        dtype: of the values.
        size: of the dimension, or a list of sizes.
        already_sorted: whether the values are in order of their indices.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenFeature(NamedTuple):
    """A feature with a shape, parsed into a tensor.

    Attributes:
        shape: of the values of one example.
        dtype: float32, int64 or string.
        default_value: for examples that lack the feature; without it none may.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows, parsed into a tensor that is padded to the longest.

    Attributes:
        shape: of one row.
        dtype: float32, int64 or string.
        allow_missing: whether examples may lack the feature; they have no rows then.
        default_value: what to pad with: 0 or "" by default.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@dataclass
class _Wanted:
    """The features that an op is asked for, sparse and dense ones apart, each by name."""

    sparse_keys: list[str] = field(default_factory=list)
    sparse_types: list[DType] = field(default_factory=list)
    dense_keys: list[str] = field(default_factory=list)
    dense_types: list[DType] = field(default_factory=list)
    dense_shapes: list[Shape] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)

    def add_sparse(self, key: str, dtype: DType) -> None:
        """Asks for the values of a feature, once."""
        if key not in self.sparse_keys:
            self.sparse_keys.append(key)
            self.sparse_types.append(dtype)
            return
        known = self.sparse_types[self.sparse_keys.index(key)]
        if known is not dtype:
            raise ValueError(f"Conflicting type {known!r} vs {dtype!r} for feature {key}.")

    def add_dense(self, key: str, dtype: DType, shape: Shape) -> None:
        """Asks for a feature with a shape."""
        self.dense_keys.append(key)
        self.dense_types.append(dtype)
        self.dense_shapes.append(shape)


_OF_EXAMPLES = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)
_OF_CONTEXTS = (VarLenFeature, FixedLenFeature)
_OF_LISTS = (VarLenFeature, FixedLenSequenceFeature)


def _wanted(features: Mapping[str, Any] | None, kinds: tuple[type, ...]) -> _Wanted:
    """Sorts out features.

    Raises:
        ValueError: one is none of the kinds, or lacks a part.
    """
    out = _Wanted()
    for key in sorted(features or ()):
        feature = (features or {})[key]
        name = type(feature).__name__
        if type(feature) not in _OF_EXAMPLES:
            raise ValueError(f"Invalid feature {key}:{feature}.")
        if type(feature) not in kinds:
            raise ValueError(f"Unsupported {name} {feature}.")
        if isinstance(feature, SparseFeature):
            for part in ("index_key", "value_key"):
                if not getattr(feature, part):
                    raise ValueError(f"Missing {part} for SparseFeature {feature}.")
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}.")
        dtype = dtypes.as_dtype(feature.dtype)
        if isinstance(feature, VarLenFeature):
            out.add_sparse(key, dtype)
        elif isinstance(feature, SparseFeature):
            for index in sorted(_index_keys(feature)):
                out.add_sparse(index, dtypes.int64)
            out.add_sparse(feature.value_key, dtype)
        else:
            _add_dense(out, key, feature, dtype)
    return out


def _index_keys(feature: SparseFeature) -> list[str]:
    key = feature.index_key
    return [key] if isinstance(key, str) else list(key)


def _add_dense(out: _Wanted, key: str, feature: Any, dtype: DType) -> None:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}.")
    shape = shapes.as_shape(feature.shape)
    if isinstance(feature, FixedLenFeature):
        if shape and shape[0] is None:
            raise ValueError(
                f"First dimension of shape for feature {key} unknown. Consider using "
                "FixedLenSequenceFeature."
            )
        if not shapes.is_fully_defined(shape):
            raise ValueError(
                f"All dimensions of shape for feature {key} need to be known but received "
                f"{feature.shape}."
            )
    elif feature.allow_missing:
        out.defaults[key] = None
    out.add_dense(key, dtype, shape)
    if feature.default_value is not None:
        out.defaults[key] = feature.default_value


def _with_rows(features: Mapping[str, Any]) -> dict[str, Any]:
    """The features, of which those with rows say that their first dimension is open."""
    out = dict(features)
    for key, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError(
                    "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
                )
            out[key] = feature._replace(shape=[None, *feature.shape])
    return out


def _safe(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)


def _defaults(wanted: _Wanted, shaped: bool = True) -> list[Tensor]:
    """The default of each dense feature; an empty one where there must be none missing."""
    out = []
    for key, dtype, shape in zip(
        wanted.dense_keys, wanted.dense_types, wanted.dense_shapes, strict=True
    ):
        value = wanted.defaults.get(key)
        if shape and shape[0] is None:
            padding = ("" if dtype is dtypes.string else 0) if value is None else value
            tensor = convert_to_tensor(padding, dtype, f"padding_{_safe(key)}")
            # What is no single element is an error here already.
            out.append(tensor if value is None else reshape(tensor, []))
        elif value is None:
            out.append(constant([], dtype))
        elif isinstance(value, Tensor):
            out.append(value)
        else:
            tensor = convert_to_tensor(value, dtype, f"key_{_safe(key)}")
            out.append(reshape(tensor, list(shape or ())) if shaped else tensor)
    return out


def _sparse_tensors(indices: Any, values: Any, dense_shapes: Any) -> list[SparseTensor]:
    return [SparseTensor(*parts) for parts in zip(indices, values, dense_shapes, strict=True)]


def _by_key(wanted: _Wanted, outputs: Sequence[Any]) -> dict[str, Any]:
    """Names to tensors; `outputs` are lists of indices, values, shapes and dense values."""
    tensors = [*_sparse_tensors(*outputs[:3]), *outputs[3]]
    return dict(zip([*wanted.sparse_keys, *wanted.dense_keys], tensors, strict=True))


def _merged(features: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Joins the parts of SparseFeatures, and leaves out what was read for them alone."""
    out = dict(found)
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            index: Any = feature.index_key
            ids = found[index] if isinstance(index, str) else [found[i] for i in index]
            out[key] = late.public("sparse_merge")(
                ids, found[feature.value_key], vocab_size=feature.size,
                already_sorted=feature.already_sorted,
            )  # fmt: skip
    return {key: tensor for key, tensor in out.items() if key in features}


# ---------------------------------------------------------------- Examples
@extensible
def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Parses a batch of serialized Examples.

    Args:
        serialized: a string vector.
        features: names to descriptions: `FixedLenFeature`, `FixedLenSequenceFeature`,
            `VarLenFeature`, `SparseFeature`.
        name: a name for the operation.
        example_names: a string vector, for error messages.

    Returns:
        Names to tensors with the batch as first dimension, SparseTensors for the last two kinds.

    Raises:
        ValueError: a description is incomplete, or there is none.
        tf.errors.InvalidArgumentError: at run time, for a malformed Example, or one that lacks a
            feature or has it with another type or size.
    """
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    wanted = _wanted(_with_rows(features), _OF_EXAMPLES)
    found = _parse_batch(serialized, example_names, wanted, name)
    return _merged(features, found)


def _parse_batch(serialized: Any, names: Any, wanted: _Wanted, name: str | None) -> dict[str, Any]:
    _check_keys("Dense and sparse", wanted)
    with name_scope(name, "ParseExample", [serialized, names]):
        outputs = parse_example_op(
            serialized, [] if names is None else names, wanted.sparse_keys, wanted.dense_keys,
            _defaults(wanted), sparse_types=wanted.sparse_types,
            dense_shapes=wanted.dense_shapes, name=name,
        )  # fmt: skip
        return _by_key(wanted, outputs)


def _check_keys(what: str, wanted: _Wanted) -> None:
    both = set(wanted.dense_keys) & set(wanted.sparse_keys)
    if both:
        raise ValueError(f"{what} keys must not intersect; intersection: {both}")


@extensible
def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Parses one serialized Example; see `parse_example`.

    Args:
        serialized: a scalar string.
        features: names to descriptions.
        name: a name for the operation.
        example_names: a scalar string, for error messages.

    Returns:
        Names to tensors without a batch dimension.
    """
    if not features:
        raise ValueError("Missing features.")
    wanted = _wanted(_with_rows(features), _OF_EXAMPLES)
    _check_keys("Dense and sparse", wanted)
    if example_names is not None:
        return _merged(features, _parse_named(serialized, example_names, wanted, name))
    with name_scope(name, "ParseSingleExample", [serialized]):
        outputs = parse_single_example_op(
            convert_to_tensor(serialized, name="serialized"), _defaults(wanted),
            num_sparse=len(wanted.sparse_keys), sparse_keys=wanted.sparse_keys,
            sparse_types=wanted.sparse_types, dense_keys=wanted.dense_keys,
            dense_shapes=wanted.dense_shapes, name=name,
        )  # fmt: skip
        return _merged(features, _by_key(wanted, outputs))


def _parse_named(serialized: Any, names: Any, wanted: _Wanted, name: str | None) -> dict[str, Any]:
    """One Example as a batch of one, which can be named."""
    with name_scope(name, "ParseSingleExample", [serialized, names]):
        batch = expand_dims(_as_scalar(serialized, "serialized", "Serialized"), 0)
        named = expand_dims(_as_scalar(names, "names", "Names"), 0)
        found = _parse_batch(batch, named, wanted, name)
        for key in wanted.dense_keys:
            found[key] = squeeze(found[key], [0], name=f"Squeeze_{_safe(key)}")
        for key in wanted.sparse_keys:
            sparse = found[key]
            found[key] = SparseTensor(
                slice(sparse.indices, [0, 1], [-1, -1], name=f"Slice_Indices_{_safe(key)}"),
                sparse.values,
                slice(sparse.dense_shape, [1], [-1], name=f"Squeeze_Shape_{_safe(key)}"),
            )
        return found


def _as_scalar(value: Any, what: str, name: str) -> Tensor:
    tensor = convert_to_tensor(value)
    known = tensor.raw_shape
    if known is None:
        scalar = Assert(
            equal(rank(tensor), 0), [f"Input {what} must be a scalar"], name=f"{name}IsScalar"
        )
        with control_dependencies([scalar]):
            return identity(tensor, name=f"{name}Dependencies")
    if known:
        raise ValueError(f"Input {what} must be a scalar")
    return tensor


# ---------------------------------------------------------------- SequenceExamples
@extensible
def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parses a batch of serialized SequenceExamples.

    Args:
        serialized: a string vector.
        context_features: names to `FixedLenFeature` or `VarLenFeature`.
        sequence_features: names to `FixedLenSequenceFeature` or `VarLenFeature`: lists of features
            in steps of time; the shape is that of one step.
        example_names: a string vector, for error messages.
        name: a name for the operation.

    Returns:
        Names to tensors of the context, names to tensors of the lists, padded to the longest, and
        names to the numbers of steps of the dense ones.

    Raises:
        ValueError: a description is incomplete, or there is none.
        tf.errors.InvalidArgumentError: at run time, as for `parse_example`.
    """
    context, lists, lacking = _sequence_wanted(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized]):
        outputs = parse_sequence_example_op(
            serialized, [] if example_names is None else example_names,
            _defaults(context, shaped=False), feature_list_dense_missing_assumed_empty=lacking,
            context_sparse_keys=context.sparse_keys, context_dense_keys=context.dense_keys,
            feature_list_sparse_keys=lists.sparse_keys, feature_list_dense_keys=lists.dense_keys,
            **_sequence_attrs(context, lists), name=name,
        )  # fmt: skip
        lengths = dict(zip(lists.dense_keys, outputs[8], strict=True))
        return _by_key(context, outputs[:4]), _by_key(lists, outputs[4:8]), lengths


@extensible
def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses one serialized SequenceExample; see `parse_sequence_example`.

    Args:
        serialized: a scalar string.
        context_features: names to `FixedLenFeature` or `VarLenFeature`.
        sequence_features: names to `FixedLenSequenceFeature` or `VarLenFeature`.
        example_name: a scalar string, for error messages.
        name: a name for the operation.

    Returns:
        Names to tensors of the context, and names to tensors of the lists, whose first dimension
        is that of time.
    """
    context, lists, lacking = _sequence_wanted(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        outputs = parse_single_sequence_example_op(
            serialized, lacking, context.sparse_keys, context.dense_keys, lists.sparse_keys,
            lists.dense_keys, _defaults(context), "" if example_name is None else example_name,
            **_sequence_attrs(context, lists), name=name,
        )  # fmt: skip
        return _by_key(context, outputs[:4]), _by_key(lists, outputs[4:])


def _sequence_wanted(context: Any, sequence: Any) -> tuple[_Wanted, _Wanted, list[str]]:
    """Features of the context, of the steps, and the lists that may be missing."""
    if not (context or sequence):
        raise ValueError("Missing features.")
    of_context, of_lists = _wanted(context, _OF_CONTEXTS), _wanted(sequence, _OF_LISTS)
    for key, value in of_lists.defaults.items():
        if value is not None:
            raise ValueError(f"Value feature_list_dense_defaults[{key}] must be None")
    return of_context, of_lists, list(of_lists.defaults)


def _sequence_attrs(context: _Wanted, lists: _Wanted) -> dict[str, Any]:
    return {
        "Ncontext_sparse": len(context.sparse_keys), "Ncontext_dense": len(context.dense_keys),
        "Nfeature_list_sparse": len(lists.sparse_keys),
        "Nfeature_list_dense": len(lists.dense_keys),
        "context_sparse_types": context.sparse_types,
        "context_dense_shapes": context.dense_shapes,
        "feature_list_sparse_types": lists.sparse_types,
        "feature_list_dense_types": lists.dense_types,
        "feature_list_dense_shapes": lists.dense_shapes,
    }  # fmt: skip
