"""Initializers: objects that make a variable's initial value from its shape and type."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import name_scope

__all__ = [
    "constant_initializer", "glorot_normal_initializer", "glorot_uniform_initializer",
    "ones_initializer", "orthogonal_initializer", "random_normal_initializer",
    "random_uniform_initializer", "truncated_normal_initializer",
    "uniform_unit_scaling_initializer", "variance_scaling_initializer", "zeros_initializer",
]  # fmt: skip


class Initializer:
    """Base of all initializers; called with a shape it returns a tensor."""

    dtype: DType = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of `shape` and `dtype` (the initializer's own by default)."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments to make an equal initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initializer from `get_config`'s result."""
        config = {k: v for k, v in config.items() if k != "dtype" or v is not None}
        return cls(**config)

    def _dtype(self, dtype: Any) -> DType:
        return self.dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype


def _floating(dtype: Any) -> DType:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


def _dims(shape: Any) -> list[int]:
    raw = shapes.as_shape(shape)
    if raw is None or None in raw:
        raise ValueError(f"An initializer needs a fully defined shape, got {shapes.text(raw)}.")
    return [int(d) for d in raw if d is not None]


def _is_computed(shape: Any) -> bool:
    """Whether a shape is known only when the graph runs."""
    return any(
        isinstance(d, Tensor) for d in (shape if isinstance(shape, list | tuple) else [shape])
    )


def _full(shape: Any, value: Any, dtype: DType, name: str) -> Tensor:
    """A constant: small ones as one Const node, large ones through Fill so graphs stay small."""
    if _is_computed(shape):
        return get("Fill")(convert_to_tensor(shape), constant(value, dtype), name=name)  # type: ignore[no-any-return]
    dims = _dims(shape)
    if math.prod(dims) < 1000:
        return (
            constant(value, dtype, dims, name=name)
            if dims or not isinstance(value, list)
            else constant(value, dtype)
        )
    with name_scope(name) as scope:
        shape_tensor = constant(dims, dtypes.int32, name="shape_as_tensor")
        return get("Fill")(shape_tensor, constant(value, dtype, name="Const"), name=scope)  # type: ignore[no-any-return]


class Zeros(Initializer):
    """All zeros."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Zeros; False or empty strings for those types."""
        found = self._dtype(dtype)
        zero: Any = "" if found is dtypes.string else False if found.is_bool else 0
        return _full(shape, zero, found, "zeros")

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"dtype": self.dtype.name}


class Ones(Initializer):
    """All ones."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Ones."""
        found = self._dtype(dtype)
        return _full(shape, True if found.is_bool else 1, found, "ones")

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"dtype": self.dtype.name}


class Constant(Initializer):
    """A given value or list of values.

    Raises:
        TypeError: the value is no number, list or array.
    """

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {value} (expected Python scalar, list or tuple "
                "of values, or numpy.ndarray)."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self,
        shape: Any,
        dtype: Any = None,
        partition_info: Any = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        """The value, its last element repeated to fill `shape`."""
        verify = self._verify_shape if verify_shape is None else verify_shape
        found = self._dtype(dtype)
        value = self.value
        if not isinstance(value, np.ndarray):
            value = np.asarray(value)
            if value.dtype.kind in "fiub" and not found.np.hasobject:
                value = value.astype(found.np)
        return constant(value, found, _dims(shape), name="Const", verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"value": self.value, "dtype": self.dtype.name}


class _Random(Initializer):
    seed: int | None = None


def _from_random(fn: str, shape: Any, **kwargs: Any) -> Tensor:
    from importlib import import_module

    dims = convert_to_tensor(shape) if _is_computed(shape) else _dims(shape)
    made: Tensor = getattr(import_module("opdock.ops.random"), fn)(dims, **kwargs)
    return made


class RandomUniform(_Random):
    """Uniform between `minval` and `maxval`."""

    def __init__(
        self,
        minval: Any = 0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Uniform values."""
        found = self._dtype(dtype)
        maxval = self.maxval
        if maxval is None and found.is_floating:
            maxval = 1
        return _from_random(
            "random_uniform", shape, minval=self.minval, maxval=maxval, dtype=found, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {
            "minval": self.minval,
            "maxval": self.maxval,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class _Normal(_Random):
    """What a function draws of a mean and a standard deviation."""

    _function: ClassVar[str]

    def __init__(
        self,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Normal values."""
        found = self._dtype(dtype)
        return _from_random(
            self._function, shape, mean=self.mean, stddev=self.stddev, dtype=found, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {
            "mean": self.mean,
            "stddev": self.stddev,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class RandomNormal(_Normal):
    """Normal with a mean and standard deviation."""

    _function = "random_normal"


class TruncatedNormal(_Normal):
    """Normal, with values beyond two standard deviations drawn again."""

    _function = "truncated_normal"


class UniformUnitScaling(_Random):
    """Uniform, scaled so that a linear layer keeps the variance of its input."""

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.factor, self.seed, self.dtype = factor, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Uniform values."""
        scale_shape = shape if partition_info is None else partition_info.full_shape
        fan_in = max(math.prod(float(d) for d in list(scale_shape)[:-1]), 1.0)
        limit = math.sqrt(3 / fan_in) * self.factor
        return _from_random(
            "random_uniform",
            shape,
            minval=-limit,
            maxval=limit,
            dtype=self._dtype(dtype),
            seed=self.seed,
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


class VarianceScaling(_Random):
    """Random with a variance of `scale / n`, n by `mode` fan_in, fan_out or fan_avg.

    (He et al. 2015, arXiv:1502.01852; Glorot & Bengio 2010.)

    Raises:
        ValueError: `scale`, `mode` or `distribution` is invalid.
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
        seed: int | None = None, dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random values."""
        found = self._dtype(dtype)
        fan_in, fan_out = _fans(shape if partition_info is None else partition_info.full_shape)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, n)
        if self.distribution in ("normal", "truncated_normal"):
            # The constant is the standard deviation of a normal cut at two.
            stddev = math.sqrt(scale) / 0.87962566103423978
            return _from_random(
                "truncated_normal", shape, mean=0.0, stddev=stddev, dtype=found, seed=self.seed
            )
        if self.distribution == "untruncated_normal":
            return _from_random(
                "random_normal",
                shape,
                mean=0.0,
                stddev=math.sqrt(scale),
                dtype=found,
                seed=self.seed,
            )
        limit = math.sqrt(3.0 * scale)
        return _from_random(
            "random_uniform", shape, minval=-limit, maxval=limit, dtype=found, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {
            "scale": self.scale, "mode": self.mode, "distribution": self.distribution,
            "seed": self.seed, "dtype": self.dtype.name,
        }  # fmt: skip


def _fans(shape: Any) -> tuple[float, float]:
    dims = [int(d) for d in shape]
    if len(dims) < 1:
        return 1.0, 1.0
    if len(dims) == 1:
        return float(dims[0]), float(dims[0])
    if len(dims) == 2:
        return float(dims[0]), float(dims[1])
    receptive = math.prod(dims[:-2])
    return float(dims[-2] * receptive), float(dims[-1] * receptive)


class _Glorot(VarianceScaling):
    """Variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""

    _drawn: ClassVar[str]

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", self._drawn, seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotUniform(_Glorot):
    """Uniform with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""

    _drawn = "uniform"


class GlorotNormal(_Glorot):
    """Truncated normal with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""

    _drawn = "truncated_normal"


class Orthogonal(_Random):
    """An orthogonal matrix from the QR of a random normal one (Saxe et al. 2013)."""

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain, self.seed, self.dtype = gain, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The matrix; further dimensions are flattened into rows."""
        dims, found = _dims(shape), self._dtype(dtype)
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        flat = (max(columns, rows), min(columns, rows))
        draw = _from_random("random_normal", flat, dtype=found, seed=self.seed)
        q, r = get("Qr")(draw, full_matrices=False)
        # Signs from the diagonal of R make the distribution uniform.
        q *= get("Sign")(get("DiagPart")(r))
        if rows < columns:
            with name_scope("matrix_transpose"):
                q = get("Transpose")(q, [1, 0], name="transpose")
        made: Tensor = self.gain * get("Reshape")(q, dims)
        return made

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


class Identity(Initializer):
    """The identity matrix times `gain`."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain, self.dtype = gain, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The matrix, or a part's share of it; ValueError for another rank."""
        dims, found = _dims(shape), self._dtype(dtype)
        whole = dims if partition_info is None else _dims(partition_info.full_shape)
        if len(whole) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        start = (0, 0) if partition_info is None else partition_info.var_offset
        eye = np.eye(dims[0], dims[1], start[0] - start[1], dtype=np.float64)
        return constant((self.gain * eye).astype(found.np), found)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"gain": self.gain, "dtype": self.dtype.name}


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
orthogonal_initializer = Orthogonal
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / fan_in.

    Args:
        seed: the seed of the numbers.
    """
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / fan_in.

    Args:
        seed: the seed of the numbers.
    """
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / fan_in.

    Args:
        seed: the seed of the numbers.
    """
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / fan_in.

    Args:
        seed: the seed of the numbers.
    """
    return VarianceScaling(2.0, "fan_in", "uniform", seed)
