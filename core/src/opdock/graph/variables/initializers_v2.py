"""TF 2's initializers: they are told the element type when they are called, and check it."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant as constant_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables import initializers as v1
from opdock.values import to_array

__all__: list[str] = []


def _numeric(dtype: Any) -> DType:
    found = dtypes.as_dtype(dtype)
    if not (found.is_floating or found.is_integer):
        raise ValueError(f"Expected float or integer dtype, got {found!r}.")
    return found


def _plain(dtype: Any) -> DType:
    found = dtypes.as_dtype(dtype)
    if not found._is_data or found is dtypes.string:
        raise ValueError(f"Expected numeric or boolean dtype, got {found!r}.")
    return found


def _floating(dtype: Any) -> DType:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found!r}.")
    return found


class Initializer(v1.Initializer):
    """Base of them all; called with a shape and a type it returns a tensor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An initializer from `get_config`'s result."""
        return cls(**{key: value for key, value in config.items() if key != "dtype"})


class _Typed(Initializer):
    """What 1.x's initializer of the same name makes, of a type that is checked first."""

    _check = staticmethod(_floating)

    def __call__(
        self, shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None
    ) -> Tensor:
        """A tensor of this shape and type; ValueError where the type does not serve."""
        return super().__call__(shape, self._check(dtype), partition_info)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {key: value for key, value in super().get_config().items() if key != "dtype"}


class Zeros(_Typed, v1.Zeros):
    """All zeros."""

    _check = staticmethod(_plain)

    def __init__(self) -> None:
        super().__init__()


class Ones(_Typed, v1.Ones):
    """All ones."""

    _check = staticmethod(_plain)

    def __init__(self) -> None:
        super().__init__()


class Constant(Initializer, v1.Constant):
    """A number for all elements, or a value for each.

    Raises:
        TypeError: the value is no number, list or array.
    """

    def __init__(self, value: Any = 0) -> None:
        super().__init__(value)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: Any = None
    ) -> Tensor:
        """The value; TypeError where there are fewer or more elements than the shape has."""
        found = None if dtype is None else dtypes.as_dtype(dtype)
        array = to_array(self.value, found)
        dims = shapes.as_shape(shape)
        if array.size != 1 and dims is not None and array.size != math.prod(d or 0 for d in dims):
            raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
        return constant_tensor(array, found, shape)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"value": self.value}


class RandomUniform(_Typed, v1.RandomUniform):
    """Uniform between `minval` and `maxval`."""

    _check = staticmethod(_numeric)

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(minval, maxval, seed)


class RandomNormal(_Typed, v1.RandomNormal):
    """Normal with a mean and standard deviation."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


class TruncatedNormal(_Typed, v1.TruncatedNormal):
    """Normal, with values beyond two standard deviations drawn again."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


class VarianceScaling(_Typed, v1.VarianceScaling):
    """Random with a variance of `scale / n`, n by `mode` fan_in, fan_out or fan_avg."""

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:  # fmt: skip
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Invalid `mode` argument:", mode)
        # The plain normal distribution is 1.x's name for the truncated one.
        named = "truncated_normal" if distribution.lower() == "normal" else distribution.lower()
        super().__init__(scale, mode, named, seed)


class _Glorot(VarianceScaling):
    _drawn: str

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", self._drawn, seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"seed": self.seed}


class GlorotUniform(_Glorot):
    """Uniform with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""

    _drawn = "uniform"


class GlorotNormal(_Glorot):
    """Truncated normal with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""

    _drawn = "truncated_normal"


class Orthogonal(_Typed, v1.Orthogonal):
    """An orthogonal matrix from the QR of a random normal one (Saxe et al. 2013)."""

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__(gain, seed)


class Identity(_Typed, v1.Identity):
    """The identity matrix times `gain`."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain)


zeros_initializer = zeros = zero = Zeros
ones_initializer = ones = one = Ones
constant_initializer = constant = Constant
random_uniform_initializer = random_uniform = uniform = RandomUniform
random_normal_initializer = random_normal = normal = RandomNormal
truncated_normal_initializer = truncated_normal = TruncatedNormal
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = glorot_uniform = GlorotUniform
glorot_normal_initializer = glorot_normal = GlorotNormal
orthogonal_initializer = orthogonal = Orthogonal
identity_initializer = identity = Identity


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / fan_in."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / fan_in."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / fan_in."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / fan_in."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)
