"""`tf.random.experimental.Generator`: random tensors whose generator is a variable."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.ops import random_stateful as ops
from opdock.ops.array import reshape
from opdock.ops.fill import zeros_like
from opdock.ops.joining import concat, stack

__all__: list[str] = []  # TF 1.15 has these names in tf.random.experimental only.

_STATE_SIZES: Final = {ops.PHILOX: 3, 2: 2}
_LONG: Final = (1 << 64) - 1
_global: list[Generator] = []


def _state_size(alg: int) -> int:
    if alg not in _STATE_SIZES:
        raise ValueError(f"Unsupported algorithm id: {alg}")
    return _STATE_SIZES[alg]


def create_rng_state(seed: Any, algorithm: int) -> npt.NDArray[np.int64]:
    """The state with which a generator begins.

    Args:
        seed: an integer of any size, or a vector of them.
        algorithm: 1 for Philox, 2 for ThreeFry.

    Returns:
        A vector of int64.

    Raises:
        ValueError: there is no such algorithm, or the seed has more than one dimension.
    """
    size = _state_size(algorithm)
    if isinstance(seed, int):
        seed = [seed >> 64 * i & _LONG for i in range(size)]
    if np.ndim(seed) != 1:
        raise ValueError(f"seed should only have one dimension; got shape: {np.shape(seed)}")
    words = np.array([int(s) & _LONG for s in seed[:size]], np.uint64).astype(np.int64)
    return np.concatenate([np.zeros(size - len(words), np.int64), words])


def _as_state(value: Any) -> Tensor:
    if isinstance(value, list):
        value = [v - (1 << 64) if v >> 63 == 1 else v for v in value]
    return convert_to_tensor(value, dtypes.int64)


def _key_counter(key: Any, counter: Any, alg: int) -> Tensor:
    key, counter = _as_state(key), _as_state(counter)
    counter.shape.assert_is_compatible_with([_state_size(alg) - 1])
    key.shape.assert_is_compatible_with([])
    return concat([counter, reshape(key, [1])], 0)


def _shape_tensor(shape: Any) -> Tensor:
    empty = isinstance(shape, (tuple, list)) and not shape
    return convert_to_tensor(shape, dtypes.int64 if empty else None, "shape")


class Generator(AutoTrackable):
    """Random tensors, drawn from a stream whose place is kept in a variable.

    The same state gives the same numbers, on every device. The variable is initialized and saved
    as any other one.

    Args:
        copy_from: a generator whose state it starts from.
        state: the state that it starts from, a vector of int64.
        alg: the algorithm: 1 for Philox.

    Raises:
        ValueError: the state is not one of that algorithm.
    """

    def __init__(
        self, copy_from: Generator | None = None, state: Any = None, alg: Any = None
    ) -> None:
        if copy_from is not None:
            if alg is not None or state is not None:
                raise ValueError("a copied generator has its state and its algorithm already")
            self._alg_var: int = copy_from.algorithm
            start: Any = copy_from.state
        else:
            if alg is None or state is None:
                raise ValueError("a generator needs both its state and its algorithm")
            self._alg_var = alg
            start = _as_state(state)
            start.shape.assert_is_compatible_with([_state_size(alg)])
        self._state_var: Any = ResourceVariable(start, dtype=dtypes.int64, trainable=False)

    # ------------------------------------------------------------ making and resetting
    @classmethod
    def from_state(cls, state: Any, alg: int) -> Generator:
        """A generator that starts from a state."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: Any, alg: int | None = None) -> Generator:
        """A generator that starts from a seed: an integer, or a vector of them."""
        alg = ops.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: int | None = None) -> Generator:
        """A generator whose numbers differ each time that its variable is initialized."""
        alg = ops.PHILOX if alg is None else alg
        return cls(state=ops.non_deterministic_ints_op([_state_size(alg)]), alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: int) -> Generator:
        """A generator that starts at a counter of the stream of a key."""
        return cls(state=_key_counter(key, counter, alg), alg=alg)

    def reset(self, state: Any) -> Operation:
        """The operation that puts the generator into a state."""
        start = _as_state(state)
        start.shape.assert_is_compatible_with([_state_size(self.algorithm)])
        return self._assigned(start)

    def reset_from_seed(self, seed: Any) -> Operation:
        """The operation that starts the generator from a seed."""
        return self._assigned(create_rng_state(seed, self.algorithm))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Operation:
        """The operation that puts the generator at a counter of the stream of a key."""
        return self._assigned(_key_counter(key, counter, self.algorithm))

    def _assigned(self, state: Any) -> Operation:
        done: Operation = self._state_var.assign(state, read_value=False)
        return done

    # ------------------------------------------------------------ the state
    @property
    def state(self) -> Any:
        """The variable: where the generator stands."""
        return self._state_var

    @property
    def algorithm(self) -> int:
        """The algorithm's number."""
        return self._alg_var

    @property
    def key(self) -> Tensor:
        """Which stream it is: the last element of the state."""
        _state_size(self.algorithm)
        last: Tensor = self._state_var[-1]
        return last

    def skip(self, delta: Any) -> Operation:
        """The operation that leaves out as much as `delta` draws would take."""
        done: Operation = ops.rng_skip_op(self.state.handle, self.algorithm, delta)
        return done

    # ------------------------------------------------------------ draws
    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers of a normal distribution."""
        return self._scaled(
            ops.stateful_normal_op, "stateful_normal", shape, mean, stddev, dtype, name
        )

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers of a normal distribution within two standard deviations."""
        return self._scaled(
            ops.stateful_truncated_normal_op, "truncated_normal", shape, mean, stddev, dtype, name
        )

    def _scaled(
        self, op: Any, default: str, shape: Any, mean: Any, stddev: Any, dtype: Any,
        name: str | None,
    ) -> Tensor:  # fmt: skip
        from opdock.ops.composed.math import add

        with name_scope(name, default, [shape, mean, stddev]) as scope:
            size = _shape_tensor(shape)
            mean = convert_to_tensor(mean, dtype, "mean")
            stddev = convert_to_tensor(stddev, dtype, "stddev")
            drawn = op(self.state.handle, self.algorithm, size, dtype=dtype)
            return add(drawn * stddev, mean, name=scope)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """Numbers spread evenly over ``[minval, maxval)``.

        Raises:
            ValueError: `dtype` is an integer type and there is no `maxval`.
        """
        from opdock.ops.composed.math import add

        dtype = dtypes.as_dtype(dtype)
        if maxval is None:
            if dtype.is_integer:
                raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
            maxval = 1
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]) as scope:
            size = _shape_tensor(shape)
            low = convert_to_tensor(minval, dtype, "min")
            high = convert_to_tensor(maxval, dtype, "max")
            place = (self.state.handle, self.algorithm, size)
            if dtype.is_integer:
                out: Tensor = ops.stateful_uniform_int_op(*place, low, high, name=scope)
                return out
            drawn = ops.stateful_uniform_op(*place, dtype=dtype)
            return add(drawn * (high - low), low, name=scope)

    def uniform_full_int(
        self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None
    ) -> Tensor:
        """Integers of the whole range of their type."""
        with name_scope(name, "stateful_uniform_full_int", [shape]) as scope:
            out: Tensor = ops.stateful_full_int_op(
                self.state.handle, self.algorithm, _shape_tensor(shape),
                dtype=dtypes.as_dtype(dtype), name=scope,
            )  # fmt: skip
            return out

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """How many of `counts` trials succeed, each with the chance `probs`.

        Args:
            shape: that of the result.
            counts: a number of trials, or one for each row of the result.
            probs: a chance, or one for each row.
            dtype: the result's type.
            name: the op's name.
        """
        with name_scope(name, "binomial", [shape, counts, probs]) as scope:
            counts = convert_to_tensor(counts, name="counts")
            probs = convert_to_tensor(probs, name="probs")
            out: Tensor = ops.stateful_binomial_op(
                self.state.handle, self.algorithm, _shape_tensor(shape), counts, probs,
                dtype=dtypes.as_dtype(dtype), name=scope,
            )  # fmt: skip
            return out

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless random ops, one in each of `count` columns."""
        _state_size(self.algorithm)
        keys = self.uniform_full_int([count], dtypes.int64)
        return stack([keys, zeros_like(keys)])


def get_global_generator() -> Generator:
    """The generator that programs share, made when it is first asked for."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Has programs share another generator."""
    _global[:] = [generator]
