"""`Distribution`: a batch of random variables, with what is known of them as methods.

A public method opens a name scope and makes tensors of its arguments; the method of the same name
with an underscore, which a subclass writes, does the mathematics. What a subclass leaves out
follows from what it has where one of a pair gives the other: `prob` and `log_prob`, `variance` and
`stddev`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from opdock import dtypes
from opdock.distributions.divergence import Registered, cross_entropy, kl_divergence
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import is_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    reshape,
    shape,
)
from opdock.ops.compare import equal
from opdock.ops.elementary import exp, log, log1p, sqrt, square
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_prod
from opdock.shapes import TensorShape, as_tensor_shape

__all__ = [
    "FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "Distribution", "ReparameterizationType",
    "Univariate", "arguments",
]  # fmt: skip


class ReparameterizationType:
    """Whether gradients flow from samples to the parameters.

    Equal to that of a library's distributions which says the same: programs compare both kinds.
    """

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameteriation Type: {self._rep_type}>"

    def __eq__(self, other: object) -> bool:
        return type(other).__name__ == type(self).__name__ and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self._rep_type)


FULLY_REPARAMETERIZED: Final = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED: Final = ReparameterizationType("NOT_REPARAMETERIZED")


def arguments(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, from its `locals()` before it does anything."""
    return {k: v for k, v in scope.items() if k != "self" and not k.startswith("__")}


def _missing(method: str) -> Any:
    """A method that says that the subclass does not have it."""

    def raises(self: Distribution, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{method} is not implemented: {type(self).__name__}")

    return raises


class Distribution(Registered):
    """A batch of independent distributions over events of one shape.

    A sample has the shape ``sample_shape + batch_shape + event_shape``.

    Args:
        dtype: the type of samples.
        reparameterization_type: whether gradients flow through samples.
        validate_args: whether to check parameters and arguments, at the cost of more ops.
        allow_nan_stats: whether statistics that are not defined are NaN; an error if not.
        parameters: the arguments that `copy` makes another one of.
        graph_parents: the tensors that the distribution is made of.
        name: a name for all its ops; the class's name by default.

    Raises:
        ValueError: a graph parent is no tensor.
    """

    def __init__(
        self, dtype: Any, reparameterization_type: ReparameterizationType, validate_args: bool,
        allow_nan_stats: bool, parameters: Mapping[str, Any] | None = None,
        graph_parents: Sequence[Any] | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        parents = list(graph_parents or ())
        for i, tensor in enumerate(parents):
            if tensor is None or not is_tensor(tensor):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {tensor}.")
        if not name or not name.endswith("/"):
            with name_scope(name or type(self).__name__) as scope:
                name = scope
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = arguments(parameters or {})
        self._graph_parents = parents
        self._name: str = name

    @contextlib.contextmanager
    def _name_scope(self, name: str | None = None, values: Sequence[Any] = ()) -> Iterator[str]:
        with (
            name_scope(self.name),
            name_scope(name, values=[*values, *self._graph_parents]) as scope,
        ):
            yield scope

    # ------------------------------------------------------------ parameters
    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> Any:
        """The shape of each parameter that gives samples of `sample_shape`, as int32 tensors."""
        with name_scope(name, values=[sample_shape]):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """`param_shapes` as static shapes.

        Raises:
            ValueError: `sample_shape` is not fully known.
        """
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        static = {}
        for name, tensor in cls.param_shapes(sample_shape).items():
            known = constant_value(tensor)
            if known is None:
                raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
            static[name] = TensorShape(known)
        return static

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Any]:
        raise NotImplementedError("_param_shapes not implemented")

    @property
    def name(self) -> str:
        """The name scope of the distribution's ops."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that it was made with."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether gradients flow through samples."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether statistics that are not defined are NaN."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether parameters and arguments are checked."""
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """Another one of the same class, with the same arguments but those given."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    # ------------------------------------------------------------ shapes
    _batch_shape_tensor = _missing("batch_shape_tensor")
    _event_shape_tensor = _missing("event_shape_tensor")

    def _batch_shape(self) -> Any:
        return TensorShape(None)

    def _event_shape(self) -> Any:
        return TensorShape(None)

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape of the batch of distributions."""
        return as_tensor_shape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The static shape of one event."""
        return as_tensor_shape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape of the batch of distributions as an int32 vector."""
        with self._name_scope(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtypes.int32, name="batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """The shape of one event as an int32 vector."""
        with self._name_scope(name):
            known = self.event_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtypes.int32, name="event_shape")
            return self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        """Whether an event is a scalar, as a bool tensor."""
        with self._name_scope(name):
            return _is_scalar(self.event_shape, self.event_shape_tensor, "is_scalar_event")

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        """Whether there is one distribution only, as a bool tensor."""
        with self._name_scope(name):
            return _is_scalar(self.batch_shape, self.batch_shape_tensor, "is_scalar_batch")

    # ------------------------------------------------------------ samples
    _sample_n = _missing("sample_n")

    def _call_sample_n(self, sample_shape: Any, seed: Any, name: str, **kwargs: Any) -> Any:
        with self._name_scope(name, values=[sample_shape]):
            vector, count = _as_vector(
                convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
            )
            flat = self._sample_n(count, seed, **kwargs)
            samples = reshape(flat, concat([vector, shape(flat)[1:]], 0))
            self._set_sample_shape(samples, TensorShape(constant_value(vector)))
            return samples

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Independent samples of shape ``sample_shape + batch_shape + event_shape``."""
        return self._call_sample_n(sample_shape, seed, name)

    def _set_sample_shape(self, samples: Any, outer: TensorShape) -> None:
        """Adds what is known of the three parts of a sample's shape to its static shape."""
        parts = [outer, self.batch_shape, self.event_shape]
        total = samples.shape.ndims
        ranks = [part.ndims for part in parts]
        if total is not None and ranks.count(None) == 1:
            missing = ranks.index(None)
            left = total - sum(r for r in ranks if r is not None)
            ranks[missing], parts[missing] = left, TensorShape([None] * left)
        if None not in ranks:
            samples.set_shape(functools.reduce(TensorShape.concatenate, parts))
        elif total is not None:
            for part, before in ((outer, True), (self.event_shape, False)):
                if part.ndims is not None:
                    rest = TensorShape([None] * (total - part.ndims))
                    known = part.concatenate(rest) if before else rest.concatenate(part)
                    samples.set_shape(known)

    # ------------------------------------------------------------ probabilities
    _log_prob = _missing("log_prob")
    _prob = _missing("prob")
    _log_cdf = _missing("log_cdf")
    _cdf = _missing("cdf")
    _log_survival_function = _missing("log_survival_function")
    _survival_function = _missing("survival_function")
    _quantile = _missing("quantile")

    def _of_value(
        self, name: str, value: Any, own: Callable[[Any], Any],
        other: Callable[[Any], Any] | None = None,
    ) -> Any:  # fmt: skip
        """`own` of a value, or `other` where the subclass does not have the former."""
        with self._name_scope(name, values=[value]):
            value = convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            return _either(own, other, value)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the probability density, or mass, at `value`."""
        return self._of_value(name, value, self._log_prob, lambda x: log(self._prob(x)))

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The probability density, or mass, at `value`."""
        return self._of_value(name, value, self._prob, lambda x: exp(self._log_prob(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of the probability of at most `value`."""
        return self._of_value(name, value, self._log_cdf, lambda x: log(self._cdf(x)))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of at most `value`."""
        return self._of_value(name, value, self._cdf, lambda x: exp(self._log_cdf(x)))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of the probability of more than `value`."""
        return self._of_value(
            name, value, self._log_survival_function, lambda x: log1p(-self.cdf(x))
        )

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of more than `value`."""
        return self._of_value(name, value, self._survival_function, lambda x: 1.0 - self.cdf(x))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The point below which a sample falls with probability `value`."""
        return self._of_value(name, value, self._quantile)

    # ------------------------------------------------------------ statistics
    _entropy = _missing("entropy")
    _mean = _missing("mean")
    _variance = _missing("variance")
    _stddev = _missing("stddev")
    _covariance = _missing("covariance")
    _mode = _missing("mode")

    def entropy(self, name: str = "entropy") -> Any:
        """Shannon's entropy in nats."""
        with self._name_scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        with self._name_scope(name):
            return self._mean()

    def variance(self, name: str = "variance") -> Any:
        """The variance of each component."""
        with self._name_scope(name):
            return _either(self._variance, lambda: square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation of each component."""
        with self._name_scope(name):
            return _either(self._stddev, lambda: sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Any:
        """The covariance matrix of an event's components."""
        with self._name_scope(name):
            return self._covariance()

    def mode(self, name: str = "mode") -> Any:
        """The most probable event."""
        with self._name_scope(name):
            return self._mode()

    def _cross_entropy(self, other: Any) -> Any:
        return cross_entropy(self, other, allow_nan_stats=self.allow_nan_stats)

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Any:
        """The mean of `-other.log_prob` over this distribution, in nats."""
        with self._name_scope(name):
            return self._cross_entropy(other)

    def _kl_divergence(self, other: Any) -> Any:
        return kl_divergence(self, other, allow_nan_stats=self.allow_nan_stats)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence from this distribution to the other; see `RegisterKL`."""
        with self._name_scope(name):
            return self._kl_divergence(other)

    # ------------------------------------------------------------ text
    def __str__(self) -> str:
        said = [f'"{self.name}"']
        for key, known in (("batch_shape", self.batch_shape), ("event_shape", self.event_shape)):
            said += [f"{key}={known}"] if known.ndims is not None else []
        said.append(f"dtype={self.dtype.name}")
        return f"tfp.distributions.{type(self).__name__}({', '.join(said)})"

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} '{self.name}' "
            f"batch_shape={self.batch_shape} event_shape={self.event_shape} "
            f"dtype={self.dtype.name}>"
        )


class Univariate(Distribution):
    """Distributions of scalars, whose parameters broadcast to the shape of the batch."""

    _PARAMETERS: ClassVar[tuple[str, ...]] = ()
    """The properties that are the parameters."""

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Any]:
        tensor = convert_to_tensor(sample_shape, dtype=dtypes.int32)
        return dict.fromkeys(cls._PARAMETERS, tensor)

    def _batch_shape_tensor(self) -> Any:
        own = [shape(getattr(self, name)) for name in self._PARAMETERS]
        return functools.reduce(broadcast_dynamic_shape, own)

    def _batch_shape(self) -> Any:
        own = [getattr(self, name).shape for name in self._PARAMETERS]
        return functools.reduce(broadcast_static_shape, own)

    def _event_shape_tensor(self) -> Any:
        return constant([], dtype=dtypes.int32)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _per_sample(self, n: Any) -> Any:
        """The shape of `n` samples of each distribution."""
        return concat([[n], self.batch_shape_tensor()], 0)


# ---------------------------------------------------------------- helpers
def _either(own: Callable[..., Any], other: Callable[..., Any] | None, *args: Any) -> Any:
    """`own` of the arguments, or `other` where a subclass has not written the former.

    Raises:
        NotImplementedError: it has written neither; the error names the former.
    """
    try:
        return own(*args)
    except NotImplementedError as missing:
        if other is None:
            raise
        try:
            return other(*args)
        except NotImplementedError:
            raise missing from None


def _is_scalar(known: TensorShape, tensor: Callable[[], Any], name: str) -> Any:
    """Whether a shape has no dimensions, as a bool tensor."""
    if known.ndims is not None:
        return convert_to_tensor(known.ndims == 0, name=name)
    dims = tensor()
    length = dims.shape.as_list()[0] if dims.shape.ndims is not None else None
    known_length = length is not None
    return convert_to_tensor(length == 0 if known_length else equal(shape(dims)[0], 0), name=name)


def _as_vector(x: Any) -> tuple[Any, Any]:
    """A shape as a vector, and the product of its dimensions.

    Raises:
        ValueError: it is neither a scalar nor a vector.
    """
    if x.shape.ndims is not None and x.shape.ndims > 1:
        raise ValueError("Input is neither scalar nor vector.")
    known = constant_value(x)
    count = reduce_prod(x) if known is None else np.prod(known, dtype=x.dtype.as_numpy_dtype)
    if x.shape.ndims == 1:
        return x, count
    if known is not None:
        return constant(np.reshape(known, [1]), dtype=x.dtype), count
    return reshape(x, [-1]), count
