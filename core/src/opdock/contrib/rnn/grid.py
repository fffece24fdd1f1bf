"""LSTMs that run over bands of frequencies as they run over time."""

from __future__ import annotations

import collections
from typing import Any

from opdock.contrib.rnn.linear import sharded_kernel
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.layers.rnn_base import RNNCell
from opdock.ops.array import shape as shape_of
from opdock.ops.bias import bias_add
from opdock.ops.clip import clip_by_value
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.padding import pad
from opdock.ops.slicing import slice as slice_of
from opdock.ops.splitting import split

__all__ = ["BidirectionalGridLSTMCell", "GridLSTMCell", "TimeFreqLSTMCell"]


def _width(inputs: Any) -> int:
    width = inputs.shape.with_rank(2).as_list()[1]
    if width is None:
        raise ValueError("Cannot infer input_size from static shape inference.")
    return int(width)


def _bands(inputs: Any, start: int, count: int, skip: int, size: int) -> list[Any]:
    """`count` slices of `size` columns, each `skip` after the one before it."""
    return [slice_of(inputs, [0, start + k * skip], [-1, size]) for k in range(count)]


def _nothing_yet(inputs: Any, num_units: int) -> Any:
    rows = inputs.shape.as_list()[0]
    return zeros([shape_of(inputs)[0] if rows is None else rows, num_units], inputs.dtype)


class _Gates:
    """What goes into the gates of an LSTM: kernel and bias, made in the scope of the first place.

    Args:
        names: of kernel and bias.
        rows: of the kernel.
        num_units: the number of units.
        dtype: of the variables.
        shards: in how many variables the kernel is kept.
        coupled: whether the cell forgets as much as it takes in, so that there is no such gate.
    """

    def __init__(
        self, names: tuple[str, str], rows: int, num_units: int, dtype: Any, shards: int,
        coupled: bool = False,
    ) -> None:  # fmt: skip
        self._order = "IJO" if coupled else "IJFO"
        columns = len(self._order) * num_units
        self._kernel = sharded_kernel(names[0], rows, columns, dtype, shards)
        self._bias = get_variable(names[1], [columns], dtype, zeros_initializer())

    def __call__(self, given: Any) -> dict[str, Any]:
        """By gate: I (input), J (new value), F (forget, unless coupled), O (output)."""
        sums = bias_add(matmul(given, self._kernel), self._bias)
        return dict(zip(self._order, split(sums, len(self._order), 1), strict=True))


class TimeFreqLSTMCell(RNNCell):
    """An LSTM that walks over bands of frequencies in every step (Sainath & Li 2016).

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memory.
        cell_clip: the memory is clipped to [-cell_clip, cell_clip].
        initializer: not used, as in TensorFlow.
        num_unit_shards: in how many variables the kernel is kept.
        forget_bias: added to the forget gate.
        feature_size: the number of frequencies in a band.
        frequency_skip: how far one band begins after the one before it.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_unit_shards: int = 1, forget_bias: float = 1.0,
        feature_size: int | None = None, frequency_skip: int = 1, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._peepholes, self._clip = num_units, use_peepholes, cell_clip
        self._shards, self._forget_bias = num_unit_shards, forget_bias
        self._feature_size, self._skip = feature_size, frequency_skip

    @property
    def state_size(self) -> int:
        """Memory and output of one band."""
        return 2 * self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: outputs and memories of all bands, side by side."""
        n, dtype = self._num_units, inputs.dtype
        size = self._feature_size or 0
        count = (_width(inputs) - size) // self._skip + 1
        gates = _Gates(("W", "B"), size + 2 * n, n, dtype, self._shards)
        peepholes = {
            gate: get_variable(f"W_{gate}_diag", [n], dtype) if self._peepholes else None
            for gate in "FIO"
        }
        below = _nothing_yet(inputs, n)
        outputs, states = [], []
        for k, band in enumerate(_bands(inputs, 0, count, self._skip, size)):
            c = slice_of(state, [0, 2 * k * n], [-1, n])
            m = slice_of(state, [0, (2 * k + 1) * n], [-1, n])
            c, below = self._step(gates(concat([band, m, below], 1)), c, peepholes)
            outputs.append(below)
            states += [c, below]
        return concat(outputs, 1), concat(states, 1)

    def _step(self, sums: Any, c: Any, peepholes: dict[str, Any]) -> tuple[Any, Any]:
        def gate(name: str, value: Any) -> Any:
            return sigmoid(value + peepholes[name] * c if self._peepholes else value)

        keep = gate("F", sums["F"] + self._forget_bias)
        c = keep * c + gate("I", sums["I"]) * tanh(sums["J"])
        if self._clip is not None:
            c = clip_by_value(c, -self._clip, self._clip)
        return c, gate("O", sums["O"]) * tanh(c)


class _Half:
    """One of a grid's two LSTMs, along the frequencies or in time; its gates see both memories.

    Args:
        gates: its kernel and bias.
        peepholes: for each gate that sees memories, a vector for that of the frequencies and one
            for that in time; none without peepholes.
        forget_bias: added to the forget gate.
        clip: where the memory is clipped, or None.
    """

    def __init__(
        self, gates: _Gates, peepholes: dict[str, list[Any]], forget_bias: float,
        clip: float | None,
    ) -> None:  # fmt: skip
        self.gates, self._peepholes = gates, peepholes
        self._forget_bias, self._clip = forget_bias, clip

    def _gate(self, name: str, value: Any, memories: Any) -> Any:
        for weight, memory in zip(self._peepholes.get(name, ()), memories, strict=False):
            value += weight * memory
        return sigmoid(value)

    def remember(self, sums: dict[str, Any], own: Any, memories: Any) -> Any:
        """The new memory."""
        take = self._gate("I", sums["I"], memories)
        coupled = "F" not in sums
        keep = 1.0 - take if coupled else self._gate("F", sums["F"] + self._forget_bias, memories)
        new = keep * own + take * tanh(sums["J"])
        return new if self._clip is None else clip_by_value(new, -self._clip, self._clip)

    def output(self, sums: dict[str, Any], own: Any, memories: Any) -> Any:
        """What it gives of its new memory."""
        return self._gate("O", sums["O"], memories) * tanh(own)


class GridLSTMCell(RNNCell):
    """A grid of LSTMs over time and over bands of frequencies (Kalchbrenner et al. 2016).

    With peepholes it is that of Sainath & Li 2016. Bands are in blocks, each with variables of its
    own.

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memories.
        share_time_frequency_weights: whether both LSTMs have one kernel.
        cell_clip: the memories are clipped to [-cell_clip, cell_clip].
        initializer: not used, as in TensorFlow.
        num_unit_shards: in how many variables a kernel is kept.
        forget_bias: added to the forget gates.
        feature_size: the number of frequencies in a band.
        frequency_skip: how far one band begins after the one before it.
        num_frequency_blocks: the number of bands in each block.
        start_freqindex_list, end_freqindex_list: where the blocks begin and end; one block takes
            all frequencies by default.
        couple_input_forget_gates: whether an LSTM forgets as much as it takes in.
        state_is_tuple: whether the state is a named tuple, else one tensor.
        reuse: whether to share variables of the scope.

    Raises:
        ValueError: there are no `num_frequency_blocks`, or they do not fit the inputs.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False,
        share_time_frequency_weights: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_unit_shards: int = 1, forget_bias: float = 1.0,
        feature_size: int | None = None, frequency_skip: int | None = None,
        num_frequency_blocks: Any = None, start_freqindex_list: Any = None,
        end_freqindex_list: Any = None, couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse)
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._num_units, self._with_peepholes = num_units, use_peepholes
        self._shared, self._coupled = share_time_frequency_weights, couple_input_forget_gates
        self._clip, self._shards, self._forget_bias = cell_clip, num_unit_shards, forget_bias
        self._feature_size, self._skip = feature_size or 0, frequency_skip or 0
        self._blocks = [int(count) for count in num_frequency_blocks]
        self._starts, self._ends = start_freqindex_list, end_freqindex_list
        self._state_is_tuple = state_is_tuple
        self._state_type = self._named_state("GridLSTMStateTuple", [""])

    def _named_state(self, name: str, prefixes: list[str]) -> Any:
        fields = [
            f"{prefix}state_f{band:02d}_b{block:02d}_{part}"
            for prefix in prefixes
            for block, count in enumerate(self._blocks)
            for band in range(count)
            for part in "cm"
        ]
        return collections.namedtuple(name, fields)  # noqa: PYI024 - its fields are arguments

    @property
    def state_tuple_type(self) -> Any:
        """The class of its states, if they are named tuples."""
        return self._state_type if self._state_is_tuple else None

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output of each band."""
        sizes = [self._num_units] * len(self._state_type._fields)
        return self._state_type(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The outputs of both LSTMs for all bands."""
        return self._num_units * len(self._state_type._fields)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        outputs, states = self._walk(self._in_blocks(inputs), state, "state")
        if self._state_is_tuple:
            return concat(outputs, 1), self._state_type(*states)
        return concat(outputs, 1), concat(states, 1)

    def _walk(
        self, blocks: list[list[Any]], state: Any, prefix: str
    ) -> tuple[list[Any], list[Any]]:
        outputs: list[Any] = []
        states: list[Any] = []
        for block, bands in enumerate(blocks):
            old = [
                self._old(state, f"{prefix}_f{k:02d}_b{block:02d}", k) for k in range(len(bands))
            ]
            more = self._along(bands, block, old)
            outputs += more[0]
            states += more[1]
        return outputs, states

    def _old(self, state: Any, name: str, band: int) -> tuple[Any, Any]:
        """Memory and output of a band, one step ago."""
        if self._state_is_tuple:
            return getattr(state, f"{name}_c"), getattr(state, f"{name}_m")
        n = self._num_units
        c, m = (slice_of(state, [0, (2 * band + k) * n], [-1, n]) for k in range(2))
        return c, m

    def _along(self, bands: list[Any], block: int, old: list[Any]) -> tuple[list[Any], list[Any]]:
        """Outputs and new states of one block, band by band."""
        freq, time = self._halves(bands[0], block)
        c_freq = m_freq = _nothing_yet(bands[0], self._num_units)
        outputs, states = [], []
        for band, (c_time, m_time) in zip(bands, old, strict=True):
            given = concat([band, m_time, m_freq], 1)
            sums = freq.gates(given)
            sums_time = sums if self._shared else time.gates(given)
            before = (c_freq, c_time)
            c_freq = freq.remember(sums, c_freq, before)
            c_time = time.remember(sums_time, c_time, before)
            m_freq = freq.output(sums, c_freq, (c_freq, c_time))
            m_time = time.output(sums_time, c_time, (c_freq, c_time))
            outputs += [m_time, m_freq]
            states += [c_time, m_time]
        return outputs, states

    def _halves(self, band: Any, block: int) -> tuple[_Half, _Half]:
        n, dtype = self._num_units, band.dtype
        rows = band.shape.as_list()[1] + 2 * n

        def gates(letter: str) -> _Gates:
            names = (f"W_{letter}_{block}", f"B_{letter}_{block}")
            return _Gates(names, rows, n, dtype, self._shards, self._coupled)

        def peepholes(of: str) -> dict[str, list[Any]]:
            if not self._with_peepholes:
                return {}
            return {
                gate: [get_variable(f"W_{gate}_diag_{of}{to}_{block}", [n], dtype) for to in "ft"]
                for gate in ("IO" if self._coupled else "FIO")
            }

        own = [gates("f")] if self._shared else [gates("f"), gates("t")]
        seen = [peepholes(of) for of in (["freq"] if self._shared else ["freq", "time"])]
        freq, time = (
            _Half(own[k], seen[k], self._forget_bias, self._clip) for k in (0, len(own) - 1)
        )
        return freq, time

    def _in_blocks(self, inputs: Any, offset: int = 0) -> list[list[Any]]:
        """The bands of each block; `offset` moves where they begin, and zeros stand outside."""
        width = _width(inputs)
        if offset:
            inputs = pad(inputs, [[0, 0], [max(-offset, 0), max(offset, 0)]])
        if not self._starts:
            if len(self._blocks) != 1:
                raise ValueError(
                    f"Length of num_frequency_blocks is not 1, but instead is {len(self._blocks)}"
                )
            ranges = [(0, width)]
        else:
            self._check_ranges()
            ranges = list(zip(self._starts, self._ends, strict=True))
        blocks = []
        for wanted, (start, end) in zip(self._blocks, ranges, strict=True):
            count = int((end - start - self._feature_size) / self._skip) + 1
            if count != wanted:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {wanted} but gets {count}, please "
                    "check the input size and filter config are correct."
                )
            begin = start + max(offset, 0)
            blocks.append(_bands(inputs, begin, count, self._skip, self._feature_size))
        return blocks

    def _check_ranges(self) -> None:
        starts, ends, blocks = len(self._starts), len(self._ends), len(self._blocks)
        if starts != ends:
            raise ValueError(
                f"Length of start and end freqindex_list does not match {starts} {ends}"
            )
        if blocks != starts:
            raise ValueError(
                "Length of num_frequency_blocks is not equal to start_freqindex_list "
                f"{blocks} {starts}"
            )


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A grid of LSTMs that goes over the frequencies both ways, with variables for each.

    Args:
        backward_slice_offset: where the bands of the way back begin, beside those of the way
            forth.
        num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer,
            num_unit_shards, forget_bias, feature_size, frequency_skip, num_frequency_blocks,
            start_freqindex_list, end_freqindex_list, couple_input_forget_gates, reuse: those of
            `GridLSTMCell`.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False,
        share_time_frequency_weights: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_unit_shards: int = 1, forget_bias: float = 1.0,
        feature_size: int | None = None, frequency_skip: int | None = None,
        num_frequency_blocks: Any = None, start_freqindex_list: Any = None,
        end_freqindex_list: Any = None, couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer,
            num_unit_shards, forget_bias, feature_size, frequency_skip, num_frequency_blocks,
            start_freqindex_list, end_freqindex_list, couple_input_forget_gates, True, reuse,
        )  # fmt: skip
        self._offset = int(backward_slice_offset)
        self._state_type = self._named_state("BidirectionalGridLSTMStateTuple", ["fwd_", "bwd_"])

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        forth = self._in_blocks(inputs)
        back = self._in_blocks(inputs, self._offset) if self._offset else forth
        with variable_scope("fwd"):
            outputs, states = self._walk(forth, state, "fwd_state")
        with variable_scope("bwd"):
            more = self._walk([bands[::-1] for bands in back], state, "bwd_state")
        return concat(outputs + more[0], 1), self._state_type(*states, *more[1])
