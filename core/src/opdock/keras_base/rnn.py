"""`K.rnn`: a step function over the times of a sequence, as a loop or written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.array import expand_dims
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import zeros_like
from opdock.ops.joining import stack
from opdock.ops.matrix import transpose
from opdock.ops.select import where
from opdock.ops.splitting import unstack
from opdock.ops.tiling import reverse, tile
from opdock.util import nest

__all__ = ["rnn"]

Step = Callable[[Any, tuple[Any, ...]], tuple[Any, Any]]


def rnn(
    step_function: Step, inputs: Any, initial_states: Sequence[Any], go_backwards: bool = False,
    mask: Any = None, constants: Sequence[Any] | None = None, unroll: bool = False,
    input_length: int | None = None, time_major: bool = False, zero_output_for_mask: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Runs a step function over the times of a sequence.

    Args:
        step_function: of an input and a tuple of states and constants; gives an output and the new
            states.
        inputs: tensors [batch, time, ...] in any structure.
        initial_states: the first states.
        go_backwards: whether the last time comes first, in the outputs as well.
        mask: a boolean tensor [batch, time]: where it is false, states and output stay.
        constants: what each step gets behind the states.
        unroll: whether each step has operations of its own; else there is a loop.
        input_length: the most steps of the loop, or None.
        time_major: whether times stand before the batch.
        zero_output_for_mask: where the mask is false, outputs are zeros in place of the last ones.

    Returns:
        The last output, the outputs [batch, time, ...] and the last states.

    Raises:
        ValueError: the steps are to be written out and their number is not known, or there is a
            mask and no state.
    """
    if not time_major:
        inputs = nest.map_structure(_swapped, inputs)
    first = nest.flatten(inputs)[0]
    for part in nest.flatten(inputs):
        part.shape.with_rank_at_least(3)
    times, batch = first.shape.as_list()[:2]
    if mask is not None:
        mask = mask if mask.dtype == dtypes.bool_ else cast(mask, dtypes.bool_)
        mask = mask if time_major else _swapped(mask)
        mask = expand_dims(mask, -1) if mask.shape.ndims == 2 else mask
    if unroll and not times:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    if go_backwards:
        inputs = nest.map_structure(lambda part: reverse(part, [0]), inputs)
        mask = None if mask is None else reverse(mask, [0])
    walk = _written_out if unroll else _loop
    steps = _Steps(step_function, inputs, tuple(initial_states), tuple(constants or ()), mask)
    last, outputs, states = walk(steps, zero_output_for_mask, input_length)
    for out in nest.flatten(outputs):
        if isinstance(out, Tensor):
            out.set_shape([times, batch, *out.shape.as_list()[2:]])
    return last, outputs if time_major else nest.map_structure(_swapped, outputs), states


def _swapped(value: Any) -> Any:
    """With batch and time in each other's place."""
    return transpose(value, [1, 0, *range(2, value.shape.ndims)])


class _Steps:
    """The sequence with its step function, over times first."""

    def __init__(
        self, function: Step, inputs: Any, states: tuple[Any, ...], constants: tuple[Any, ...],
        mask: Any,
    ) -> None:  # fmt: skip
        self.inputs, self.states, self.mask = inputs, states, mask
        self._function, self._constants = function, constants

    def step(self, value: Any, states: Any) -> tuple[Any, Any]:
        """Output and states of one time."""
        output, new = self._function(value, (*states, *self._constants))
        for state, old in zip(nest.flatten(new), nest.flatten(list(states)), strict=True):
            if isinstance(state, Tensor):
                state.set_shape(old.shape)
        return output, new

    def masked_step(
        self, value: Any, mask: Any, states: Any, otherwise: Any
    ) -> tuple[Any, Any]:  # fmt: skip
        """The same where the mask is true; elsewhere the old states and this output."""
        output, new = self.step(value, states)
        return _chosen(mask, output, otherwise), _chosen(mask, new, tuple(states))


def _chosen(mask: Any, new: Any, old: Any) -> Any:
    """Parts of a structure where a mask [batch, 1] is true, parts of another where it is not."""
    pairs = zip(nest.flatten(new), nest.flatten(old), strict=True)
    return nest.pack_sequence_as(new, [where(_as_wide(mask, a), a, b) for a, b in pairs])


def _as_wide(mask: Any, value: Any) -> Any:
    for _ in range(value.shape.ndims - mask.shape.ndims):
        mask = expand_dims(mask, -1)
    return tile(mask, [1, *value.shape.as_list()[1:]])


def _written_out(steps: _Steps, zero: bool, _: int | None) -> tuple[Any, Any, Any]:
    parts = [unstack(part) for part in nest.flatten(steps.inputs)]
    values = [nest.pack_sequence_as(steps.inputs, list(one)) for one in zip(*parts, strict=True)]
    masks = [None] * len(values) if steps.mask is None else unstack(steps.mask)
    states: Any = steps.states
    outputs: list[Any] = []
    for value, mask in zip(values, masks, strict=True):
        if mask is None:
            output, states = steps.step(value, states)
        else:
            output, new = steps.step(value, states)
            nothing = nest.map_structure(zeros_like, output)
            output = _chosen(mask, output, nothing if zero or not outputs else outputs[-1])
            states = _chosen(mask, new, tuple(states))
        outputs.append(output)
    return outputs[-1], nest.map_structure(lambda *each: stack(each), *outputs), states


def _loop(steps: _Steps, zero: bool, most: int | None) -> tuple[Any, Any, Any]:
    flat = nest.flatten(steps.inputs)
    count = shape_of(flat[0])[0]

    def read(arrays: Any, time: Any) -> Any:
        return nest.pack_sequence_as(steps.inputs, [a.read(time) for a in arrays])

    sources = [TensorArray(x.dtype, count, name=f"input_ta_{i}").unstack(x)
               for i, x in enumerate(flat)]  # fmt: skip
    # The first step, for types and shapes alone: what it computes nobody needs.
    pattern, _ = steps.step(nest.pack_sequence_as(steps.inputs, [x[0] for x in flat]), steps.states)
    made = tuple(
        TensorArray(out.dtype, count, element_shape=out.shape, name=f"output_ta_{i}")
        for i, out in enumerate(nest.flatten(pattern))
    )
    nothing = tuple(zeros_like(out) for out in nest.flatten(pattern))
    if steps.mask is not None and not steps.states:
        raise ValueError(
            "No initial states provided! When using masking in an RNN, you should provide initial "
            "states (and your step function should return as its first state at time `t` the "
            "output at time `t-1`)."
        )
    masks = None
    if steps.mask is not None:
        masks = TensorArray(dtypes.bool_, count, name="mask_ta").unstack(steps.mask)

    def body(time: Any, arrays: Any, last: Any, states: Any) -> Any:
        value = read(sources, time)
        if masks is None:
            output, new = steps.step(value, states)
        else:
            other = nest.pack_sequence_as(pattern, list(nothing if zero else last))
            output, new = steps.masked_step(value, masks.read(time), states, other)
        parts = tuple(nest.flatten(output))
        arrays = tuple(a.write(time, out) for a, out in zip(arrays, parts, strict=True))
        kept = parts if masks is not None and not zero else last
        return time + 1, arrays, kept, nest.pack_sequence_as(steps.states, nest.flatten(new))

    _, arrays, _, states = while_loop(
        lambda time, *_: time < count, body, (0, made, nothing, steps.states),
        maximum_iterations=most, swap_memory=True, parallel_iterations=32,
    )  # fmt: skip
    outputs = [a.stack() for a in arrays]
    last = nest.pack_sequence_as(pattern, [out[-1] for out in outputs])
    return last, nest.pack_sequence_as(pattern, outputs), states
