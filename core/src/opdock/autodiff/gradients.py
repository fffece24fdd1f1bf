"""`tf.gradients`: reverse-mode differentiation that adds operations to the graph.

The graph is walked once from `ys` back to `xs`, each operation after all that use it; its gradient
function builds the operations for its inputs' gradients. (Griewank & Walther, "Evaluating
Derivatives", ch. 3: the vector-Jacobian product of a composition is the composition of
vector-Jacobian products in reverse.)
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.autodiff.aggregate import AggregationMethod, add_up
from opdock.autodiff.initial_values import check_initial_values
from opdock.graph.nodes import gradient_scope
from opdock.graph.nodes.composite import IndexedSlices, internal_convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.frames import frames_known
from opdock.graph.nodes.gradient_registry import gradient_of
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor, has_graph
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import executing_eagerly, name_scope
from opdock.graph.nodes.traits import Control
from opdock.ops import control

Gradient = Tensor | IndexedSlices | None
# Their gradients make the zeros that they need themselves, where they need them.
_OWN_ZEROS: Final = frozenset({
    "If", "StatelessIf", "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall",
})  # fmt: skip


class UnconnectedGradients(Enum):
    """What `tf.gradients` returns for an x that does not influence the ys."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: a tensor or list of tensors to differentiate.
        xs: a tensor, variable, or list of those.
        grad_ys: initial gradients, one per y; ones by default.
        name: the name scope of the new operations.
        colocate_gradients_with_ops: put each gradient op on the device of its forward op.
        gate_gradients: compute all gradients of an op before any of them is used.
        aggregation_method: one of `tf.AggregationMethod`.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: `NONE` gives None for an x that no y depends on, `ZERO` zeros.

    Returns:
        One Tensor, IndexedSlices (the gradient of a gather) or None per x.

    Raises:
        LookupError: an op on the way has no gradient.
        ValueError: `grad_ys` has a wrong length, or gradients do not fit.
        TypeError: `grad_ys` has a wrong type.
        RuntimeError: operations run as they are made.
    """
    if executing_eagerly():
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape "
            "instead."
        )
    return derivatives(
        ys, xs, grad_ys, name, colocate_gradients_with_ops, gate_gradients, aggregation_method,
        stop_gradients, unconnected_gradients,
    )  # fmt: skip


def derivatives(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
    colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: int | None = None, stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    """`gradients`, of what a graph holds or a tape has kept."""
    ys, xs = _as_list(ys), _as_list(xs)
    stop_gradients = [] if stop_gradients is None else _as_list(stop_gradients)
    grad_ys = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(grad_ys) != len(ys):
        raise ValueError(f"Length mismatch. Passed {len(grad_ys)} grad_ys for {len(ys)} ys")
    try:
        connected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {unconnected_gradients!r}"
        ) from None
    graph = get_default_graph()
    with (
        frames_known(sys._getframe()),
        name_scope(
            name, "gradients", [*ys, *xs, *stop_gradients, *[g for g in grad_ys if g is not None]]
        ) as scope,
        gradient_scope.entered(scope, colocate_gradients_with_ops, graph),
    ):
        colocate = colocate_gradients_with_ops or gradient_scope.colocates()
        targets = [_tensor_of(y, "y") for y in ys]
        sources = [_source_of(x) for x in xs]
        outer = _captures(graph)
        # A backward body stands values of the forward body in for them.
        captured: dict[Tensor, Tensor] = getattr(graph, "_captured", {})
        sources = [s if captured.get(s) in outer else captured.get(s, s) for s in sources]
        stops = {_tensor_of(s, "stop_gradients") for s in stop_gradients}
        if graph.building_function:
            check_initial_values(graph, targets, set(sources), stops, outer)
        walk = _Walk(outer, targets, sources, stops, colocate, aggregation_method)
        walk.seed(_initial(targets, grad_ys, colocate))
        walk.run(scope, gate_gradients)
        return [walk.result(x, connected) for x in sources]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensor_of(value: Any, what: str) -> Tensor:
    converted = internal_convert_to_tensor_or_indexed_slices(value, name=what)
    return converted.values if isinstance(converted, IndexedSlices) else converted


def _source_of(x: Any) -> Tensor:
    """The tensor whose uses count as uses of x: the handle of a resource variable."""
    handle = getattr(x, "_gradient_source", None)
    if handle is not None:
        return handle()  # type: ignore[no-any-return]
    return _tensor_of(x, "x")


def _trainable(dtype: dtypes.DType) -> bool:
    base = dtype.base_dtype
    return base.is_floating or base.is_complex or base is dtypes.resource or base is dtypes.variant


def _initial(ys: list[Tensor], grad_ys: list[Any], colocate: bool) -> list[tuple[Tensor, Gradient]]:
    out: list[tuple[Tensor, Gradient]] = []
    for i, (y, grad) in enumerate(zip(ys, grad_ys, strict=True)):
        with _maybe_colocate(y.op, colocate):
            if grad is None:
                if y.dtype.base_dtype.is_complex:
                    raise TypeError(
                        f"Gradients of complex tensors must set grad_ys (y.dtype = {y.dtype!r})"
                    )
                one = convert_to_tensor(1, y.dtype, name=f"grad_ys_{i}")
                out.append((y, get("Fill")(_shape_of(y), one)))
                continue
            value = internal_convert_to_tensor_or_indexed_slices(
                grad,
                None if hasattr(grad, "dtype") and has_graph(grad) else y.dtype,
                f"grad_ys_{i}",
            )
            _check_grad_y(y, value)
            if isinstance(value, Tensor):
                # Under a name of its own, so that the backward graph reads well.
                value = get("Identity")(value, name=f"grad_ys_{i}")
            out.append((y, value))
    return out


def _check_grad_y(y: Tensor, grad: Any) -> None:
    """TypeError unless both are real, both complex or both handles; shapes may differ."""
    base, given = y.dtype.base_dtype, grad.dtype.base_dtype
    for kind, fits in (
        ("real", lambda d: d.is_floating or d.is_integer),
        ("complex", lambda d: d.is_complex),
        ("variant", lambda d: d is dtypes.variant),
    ):
        if fits(base):
            if not fits(given):
                raise TypeError(
                    f"Gradient type {given.name} generated for {kind} tensor {y} with type "
                    f"{base.name} must be {kind}"
                )
            return
    if base is not given:
        raise TypeError(
            f"Tensor {y} with type {base.name} must be numeric to obtain a default gradient"
        )


def _shape_of(tensor: Tensor) -> Any:
    known = tensor.raw_shape
    if known is not None and None not in known:
        return convert_to_tensor(list(known), dtypes.int32, name="Shape")
    return get("Shape")(tensor)


@contextlib.contextmanager
def _maybe_colocate(op: Operation, colocate: bool) -> Iterator[None]:
    if not colocate:
        yield
        return
    here = get_default_graph()
    if op.graph is here:
        with here.colocate_with(op):
            yield
        return
    # An op of a forward body: from within the backward body there is only its device to go to.
    with here.device(None), here.device(op.device or None):
        yield


def _captures(graph: Graph | None) -> dict[Tensor, Tensor]:
    """Inside a branch or loop: parameters that stand for tensors of outer graphs, and these."""
    found: dict[Tensor, Tensor] = {}
    while graph is not None:
        found.update((inner, outer) for outer, inner in getattr(graph, "captures", ()))
        graph = getattr(graph, "outer", None)
    return found


def _inputs_of(op: Operation, captures: dict[Tensor, Tensor]) -> Sequence[Tensor]:
    """What the op computes from; of a captured parameter: the tensor that it stands for."""
    if captures and not op._inputs and op.outputs and op.outputs[0] in captures:
        return (captures[op.outputs[0]],)
    return op._inputs


class _Walk:
    """One backward pass.

    Args:
        captures: parameters of the bodies around, and the outer tensors they stand for.
        ys, xs, stops: where the pass starts, ends, and does not go on.
        colocate: put the gradients where the forward ops are.
        aggregation: an `AggregationMethod`.
    """

    def __init__(
        self,
        captures: dict[Tensor, Tensor],
        ys: list[Tensor],
        xs: list[Tensor],
        stops: set[Tensor],
        colocate: bool,
        aggregation: int | None,
    ) -> None:
        self.captures = captures
        self.ys = ys
        self.xs = xs
        self.stops = stops
        self.colocate = colocate
        self.aggregation = aggregation
        self.between = _between(ys, xs, stops, captures)
        self.grads: dict[Tensor, list[Any]] = {}
        self.summed: dict[Tensor, Any] = {}
        self.results = set(xs)

    def seed(self, initial: list[tuple[Tensor, Gradient]]) -> None:
        """Starts from the gradients of the ys."""
        for y, grad in initial:
            self.add(y, grad)

    def add(self, tensor: Tensor, grad: Any) -> None:
        """Adds one contribution."""
        self.grads.setdefault(tensor, []).append(grad)

    def run(self, scope: str, gate: bool) -> None:
        """Visits the ops between xs and ys, each after all that use its outputs.

        The order is TF's, breadth first from the ys: sums of gradients add up in it.
        """
        waiting = self._uses()
        queue = deque(op for op in dict.fromkeys(y._op for y in self.ys) if waiting.get(op) == 0)
        while queue:
            op = queue.popleft()
            self._differentiate(op, gate)
            for other in self._sources(op):
                if other in waiting:
                    waiting[other] -= 1
                    if waiting[other] == 0:
                        queue.append(other)

    def _uses(self) -> dict[Operation, int]:
        uses = dict.fromkeys(self.between, 0)
        for op in self.between:
            for other in self._sources(op):
                if other in uses:
                    uses[other] += 1
        return uses

    def _sources(self, op: Operation) -> dict[Operation, None]:
        inputs = _inputs_of(op, self.captures)
        return dict.fromkeys(t._op for t in inputs if t not in self.stops)

    def _differentiate(self, op: Operation, gate: bool) -> None:
        outs = [None if t in self.stops else self._sum(t) for t in op.outputs]
        inputs = _inputs_of(op, self.captures)
        if all(g is None for g in outs) or not any(
            t._op in self.between or t in self.results for t in inputs
        ):
            return
        if inputs is not op._inputs:
            if inputs[0] not in self.stops:
                self.add(inputs[0], outs[0])
            return
        # The gradient function is looked up only where a gradient flows.
        fn = gradient_of(op)
        if fn is None:
            return
        dense = fn is op.spec.gradient_fn and not getattr(fn, "keeps_slices", False)
        with (
            name_scope(op.name + "_grad"),
            get_default_graph()._original_op(op),
            _maybe_colocate(op, self.colocate),
        ):
            if dense:
                outs = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in outs]
            for i, (tensor, grad) in enumerate(zip(op.outputs, outs, strict=True)):
                if (
                    grad is None
                    and _trainable(tensor.dtype)
                    and tensor.dtype.base_dtype not in (dtypes.resource, dtypes.variant)
                    and (op.type not in _OWN_ZEROS or self._is_left_out(op, tensor))
                ):
                    outs[i] = _zeros_of(tensor)
            found = _as_list(fn(op, *outs))
            if gate and sum(g is not None for g in found) > 1:
                found = control.tuple(found)
        if len(found) != len(op._inputs):
            raise ValueError(
                f"The gradient of op '{op.name}' ({op.type}) returned {len(found)} gradients for "
                f"{len(op._inputs)} inputs."
            )
        for tensor, grad in zip(op._inputs, found, strict=True):
            if grad is None:
                continue
            self._check(op, tensor, grad)
            self.add(tensor, grad)

    def _is_left_out(self, op: Operation, tensor: Tensor) -> bool:
        """Whether it is a loop's result on which the ys hang, although no gradient comes back.

        TF goes through the loop with zeros then: what it is made of has a gradient, of zeros.
        """
        loop = op.spec.traits.control is Control.LOOP
        return loop and any(user in self.between for user in tensor.consumers())

    def _check(self, op: Operation, tensor: Tensor, grad: Any) -> None:
        if isinstance(grad, Tensor):
            if (
                not shapes.is_compatible(grad._shape, tensor._shape)
                and tensor._dtype.base_dtype is not dtypes.resource
            ):
                raise ValueError(
                    f"Incompatible shapes between op input and calculated input gradient. Forward "
                    f"operation: {op.name} ({op.type}), input '{tensor.name}' of shape "
                    f"{shapes.text(tensor._shape)}, gradient of shape {shapes.text(grad._shape)}, "
                    f"created at {op.user_line}"
                )
            if (
                tensor._shape is not None
                and grad._shape != tensor._shape
                and tensor._dtype.base_dtype is not dtypes.resource
            ):
                grad.set_shape(tensor._shape)
        elif not isinstance(grad, IndexedSlices):
            raise TypeError(f"The gradient of '{op.name}' must be tensors, got {grad!r}.")

    def _sum(self, tensor: Tensor) -> Any:
        """The whole gradient of a tensor: all contributions are in when its op is visited."""
        if tensor in self.summed:
            return self.summed[tensor]
        parts = self.grads.get(tensor)
        if not parts:
            return None
        if len(parts) == 1:
            total = parts[0]
        else:
            with _maybe_colocate(tensor._op, self.colocate):
                total = add_up(tensor, parts, self.aggregation)
        self.summed[tensor] = total
        return total

    def result(self, x: Tensor, unconnected: UnconnectedGradients) -> Any:
        """The gradient of one x."""
        grad = self._sum(x)
        if grad is None and unconnected is UnconnectedGradients.ZERO:
            return _zeros_of(x)
        return grad


def _between(
    ys: list[Tensor], xs: list[Tensor], stops: set[Tensor], captures: dict[Tensor, Tensor]
) -> set[Operation]:
    """Operations on a path from an x to a y along which gradients can flow."""
    back: set[Operation] = set()
    stack = [y._op for y in ys]
    while stack:
        op = stack.pop()
        if op in back:
            continue
        back.add(op)
        stack.extend(
            t._op for t in _inputs_of(op, captures) if t not in stops and _trainable(t._dtype)
        )
    # Not in the order of making: a graph that was edited may have edges against it.
    users: dict[Operation, list[Operation]] = {}
    for op in back:
        for tensor in _inputs_of(op, captures):
            if _trainable(tensor._dtype):
                users.setdefault(tensor._op, []).append(op)
    forward: set[Operation] = set()
    stack = [x._op for x in xs]
    while stack:
        op = stack.pop()
        if op not in forward:
            forward.add(op)
            stack.extend(users.get(op, ()))
    return back & forward


def _zeros_of(tensor: Tensor) -> Tensor:
    """Zeros like `tensor` that do not depend on its value where its shape is known."""
    known = tensor._shape
    base = tensor._dtype.base_dtype
    if base is dtypes.resource:
        element = tensor._op.attrs.get("dtype", dtypes.float32)
        return get("Fill")(get("VariableShape")(tensor), convert_to_tensor(0, element))  # type: ignore[no-any-return]
    if known is not None and None not in known:
        return get("Fill")(convert_to_tensor(list(known), dtypes.int32), convert_to_tensor(0, base))  # type: ignore[no-any-return]
    return get("ZerosLike")(tensor)  # type: ignore[no-any-return]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """The Hessian of the sum of `ys` for each of `xs`, of shape `x.shape + x.shape`.

    A loop in the graph differentiates the gradient entry by entry; `colocate_gradients_with_ops`,
    `gate_gradients` and `aggregation_method` are as of `tf.gradients`.

    Raises:
        ValueError: an x does not influence ys, or not their gradient.
    """
    from opdock.ops.composed.loops import while_loop
    from opdock.ops.composed.tensor_array import TensorArray

    xs = _as_list(xs)
    kwargs: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    out = []
    with name_scope(name, "hessians"):
        for x, gradient in zip(xs, gradients(ys, xs, **kwargs), strict=True):
            source = convert_to_tensor(x)
            if gradient is None:
                raise ValueError(f"tf.hessians needs ys to depend on x; got {source}.")
            flat = get("Reshape")(convert_to_tensor(gradient), [-1])
            size = get("Size")(source)

            def row(
                i: Tensor, rows: Any, x: Any = x, flat: Tensor = flat, like: Tensor = source
            ) -> Any:
                entry = flat[i]
                dense = convert_to_tensor(gradients(entry, x, **kwargs)[0])
                dense.set_shape(like.shape)
                return i + 1, rows.write(i, dense)

            start = (
                convert_to_tensor(0, dtypes.int32),
                TensorArray(source.dtype.base_dtype, size, element_shape=source.shape),
            )
            _, rows = while_loop(lambda i, _, n=size: i < n, row, start)
            shape = get("Shape")(source)
            stacked = get("Reshape")(rows.stack(), get("ConcatV2")([shape, shape], 0))
            known = source.raw_shape
            stacked.set_shape(None if known is None else known + known)
            out.append(stacked)
    return out


__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients", "hessians"]
