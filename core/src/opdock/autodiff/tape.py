"""`tf.GradientTape` over a graph: which gradients a tape would know, computed by `tf.gradients`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

from opdock import dtypes
from opdock.autodiff.gradients import UnconnectedGradients, derivatives
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable import Variable
from opdock.ops.array import reshape, shape
from opdock.ops.check import assert_equal
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import zeros, zeros_like
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.util import nest

__all__ = ["GradientTape"]

_NONE: Final = UnconnectedGradients.NONE


class GradientTape:
    """Differentiates what is built while it is open.

    A graph holds all its operations, so the tape has nothing to store: it says which operations
    count, all but those built under `stop_recording`, and which tensors and variables are watched.
    Where operations run as they are made, nobody else holds them: the tape has them kept.

    Args:
        persistent: whether `gradient` may be called more than once.
        watch_accessed_variables: whether trainable variables are watched without being asked.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._all_variables = persistent, watch_accessed_variables
        self._recording = False
        self._new()

    def _new(self) -> None:
        self._alive = False
        self._watched: dict[int, Any] = {}
        self._silent: list[Operation] = []
        self._begin = 0
        self._kept: Any = None

    # ------------------------------------------------------------ recording
    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._recording:
            self._stop()

    def _start(self) -> None:
        if self._recording:
            raise ValueError("Tape is already recording.")
        graph = get_default_graph()
        if graph.eager:
            self._kept = graph._record(self._kept)
        elif not self._alive:
            self._begin = len(graph.get_operations())
        self._alive = self._recording = True

    def _stop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        if self._kept is not None:
            self._kept.stop()
        self._recording = False

    def watch(self, tensor: Any) -> None:
        """Lets gradients be asked for with respect to a tensor, or several in a structure.

        Raises:
            ValueError: something in it is neither a tensor nor a variable.
        """
        for t in nest.flatten(tensor):
            if not isinstance(t, (Tensor, Variable)):
                raise ValueError(f"Passed in object of type {type(t)}, not tf.Tensor")
            self._watched[id(t)] = t

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """What is built inside counts as constant.

        Raises:
            RuntimeError: the tape has not begun.
        """
        if not self._alive:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._stop()
        begin = len(get_default_graph().get_operations())
        try:
            yield
        finally:
            self._silent.extend(get_default_graph().get_operations()[begin:])
            self._start()

    def reset(self) -> None:
        """Forgets all that was watched and recorded."""
        self._stop()
        self._new()
        self._start()

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that are watched: those asked for, and trainable ones that were read."""
        found = [v for v in self._watched.values() if isinstance(v, Variable)]
        if self._kept is not None and self._all_variables:
            found += [v for v in self._kept.variables() if id(v) not in self._watched]
        elif self._all_variables:
            read = {
                t
                for op in get_default_graph().get_operations()[self._begin :]
                for t in (*op.inputs, *op.outputs)
            }
            for v in get_default_graph().get_collection("trainable_variables"):
                if id(v) not in self._watched and any(t in read for t in _states(v)):
                    found.append(v)
        return tuple(found)

    # ------------------------------------------------------------ derivatives
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None,
        unconnected_gradients: Any = _NONE,
    ) -> Any:  # fmt: skip
        """The derivatives of the sum of `target` with respect to `sources`.

        Args:
            target: a tensor or a structure of tensors.
            sources: watched tensors or variables, or a structure of them.
            output_gradients: a gradient for each target; ones by default.
            unconnected_gradients: whether sources without influence get None or zeros.

        Returns:
            A structure like `sources`.

        Raises:
            RuntimeError: the tape is not persistent and was asked before.
        """
        if not self._alive:
            raise RuntimeError(
                "GradientTape.gradient can only be called once on non-persistent tapes."
            )
        targets = [self._read(t) for t in nest.flatten(target)]
        if self._recording and not self._persistent:
            self._stop()
        flat = nest.flatten(sources)
        given = None if output_gradients is None else nest.flatten(output_gradients)
        stops = [t for op in self._silent for t in op.outputs]
        known = [self._knows(s) for s in flat]
        found = iter(
            derivatives(
                targets, [s for s, is_known in zip(flat, known, strict=True) if is_known], given,
                stop_gradients=stops or None, unconnected_gradients=unconnected_gradients,
            )
        )  # fmt: skip
        zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
        results = [
            next(found) if is_known else zeros_like(convert_to_tensor(s)) if zero else None
            for s, is_known in zip(flat, known, strict=True)
        ]
        if not self._persistent:
            self._alive = False
            if self._kept is not None:
                self._kept.end()
        return nest.pack_sequence_as(sources, results) if nest.is_sequence(sources) else results[0]

    def _read(self, target: Any) -> Tensor:
        """A target as a tensor; a variable is read under the tape, so that it depends on itself."""
        if self._recording or not isinstance(target, Variable):
            return convert_to_tensor(target)
        self._start()
        try:
            return convert_to_tensor(target)
        finally:
            self._stop()

    def _knows(self, source: Any) -> bool:
        """Whether a source is watched, or computed from what is."""
        watched = set(self._watched)
        if isinstance(source, Variable):
            return id(source) in watched or (
                self._all_variables and bool(getattr(source, "trainable", True))
            )
        roots = {t for v in self._watched.values() for t in _states(v)}
        if self._all_variables and self._kept is not None:
            roots.update(v.handle for v in self._kept.variables())
        elif self._all_variables:
            for v in get_default_graph().get_collection("trainable_variables"):
                roots.update(_states(v))
        waiting, seen = [source], set()
        while waiting:
            tensor = waiting.pop()
            if tensor in roots:
                return True
            if tensor not in seen:
                seen.add(tensor)
                waiting.extend(_behind(tensor))
        return False

    def _recorded(self, make: Callable[[], Any]) -> Any:
        """What a function makes, in a way that it can be differentiated."""
        if self._kept is None or self._recording:
            return make()
        self._start()
        try:
            return make()
        finally:
            self._stop()

    def _each(self, numbers: Tensor, axis: int, sources: list[Any], stop: Any) -> Any:
        """The gradients of each entry along an axis, stacked; None for sources that have none."""
        count = shape(numbers)[axis]
        persistent, self._persistent = self._persistent, True
        try:
            # All numbers depend on what one of them does, and there may be none.
            connected = self.gradient(numbers, sources, unconnected_gradients=stop)
            live = [s for s, g in zip(sources, connected, strict=True) if g is not None]

            def row(i: Tensor, rows: list[Any]) -> Any:
                made = self.gradient(
                    self._recorded(lambda: gather(numbers, i, axis=axis)),
                    live,
                    unconnected_gradients=stop,
                )
                written = [
                    array.write(i, convert_to_tensor(g))
                    for array, g in zip(rows, made, strict=True)
                ]
                return i + 1, written

            start = [TensorArray(s.dtype.base_dtype, count, element_shape=s.shape) for s in live]
            rows: Any = []
            if live:
                _, rows = while_loop(
                    lambda i, _: i < count, row, (convert_to_tensor(0, dtypes.int32), start)
                )
        finally:
            self._persistent = persistent
            self._alive = persistent
        stacked = iter([array.stack() for array in rows])
        return [None if g is None else next(stacked) for g in connected]

    def jacobian(
        self, target: Any, sources: Any, unconnected_gradients: Any = _NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """The derivatives of each number in `target`, of shape `target.shape + source.shape`.

        Args:
            target: a tensor.
            sources: watched tensors or variables, or a structure of them.
            unconnected_gradients: whether sources without influence get None or zeros.
            parallel_iterations, experimental_use_pfor: accepted for TF's signature; a loop in the
                graph differentiates number by number.

        Raises:
            RuntimeError: the tape is not persistent and was asked before.
        """
        flat = nest.flatten(sources)
        numbers = self._recorded(lambda: reshape(target, [-1]))
        whole = shape(target)
        outputs = self._each(numbers, 0, flat, unconnected_gradients)
        for at, (source, found) in enumerate(zip(flat, outputs, strict=True)):
            if found is not None:
                outputs[at] = reshape(found, concat([whole, shape(found)[1:]], 0))
                outputs[at].set_shape(target.shape.concatenate(source.shape))
        return nest.pack_sequence_as(sources, outputs) if nest.is_sequence(sources) else outputs[0]

    def batch_jacobian(
        self, target: Any, source: Any, unconnected_gradients: Any = _NONE,
        parallel_iterations: int | None = None, experimental_use_pfor: bool = True,
    ) -> Any:  # fmt: skip
        """The Jacobian of each example: [batch, rest of the target, rest of the source].

        Args:
            target: a tensor [batch, ...] whose examples depend on those of `source` alone.
            source: a watched tensor [batch, ...].
            unconnected_gradients: whether a source without influence gets None or zeros.
            parallel_iterations, experimental_use_pfor: accepted for TF's signature.

        Raises:
            ValueError: the batches differ.
        """
        ranks = target.shape.with_rank_at_least(2), source.shape.with_rank_at_least(2)
        batches = [s.as_list()[0] for s in ranks if s.ndims]
        if None not in batches and len(set(batches)) > 1:
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape "
                f"({source.shape}) to match."
            )
        whole, given = shape(target), shape(source)
        with control_dependencies([assert_equal(whole[0], given[0])]):
            rows = self._recorded(lambda: reshape(target, concat([whole[:1], [-1]], 0)))
        columns = shape(rows)[1]
        (found,) = self._each(rows, 1, [source], unconnected_gradients)
        joined = concat([whole, given[1:]], 0)
        if found is None:
            return zeros(joined, target.dtype)
        flat = reshape(found, concat([[columns, given[0]], [-1]], 0))
        return reshape(transpose(flat, [1, 0, 2]), joined)


def _behind(tensor: Tensor) -> list[Tensor]:
    """What a tensor is computed from; for what a function captured, the tensor outside."""
    outside = [
        outer for outer, inner in getattr(tensor._op.graph, "captures", ()) if inner is tensor
    ]
    return outside or list(tensor.op.inputs)


def _states(value: Any) -> list[Tensor]:
    """The tensors by which a variable is read; a tensor itself."""
    if isinstance(value, Tensor):
        return [value]
    names = ("_variable", "_snapshot", "handle", "_ref")
    found = [getattr(value, n, None) for n in names]
    return [t for t in found if isinstance(t, Tensor)]
