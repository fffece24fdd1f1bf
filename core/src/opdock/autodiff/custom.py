"""`tf.custom_gradient`: a function with a gradient of the user's own."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.gradient_registry import PYTHON_GRADIENTS
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.util import nest

_counter = itertools.count()


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Decorator for `f(*x) -> (y, grad_fn)` whose gradient is `grad_fn(*dy)`.

    If `f` uses variables it must give `grad_fn` a keyword argument `variables`; it then returns
    (gradients of x, gradients of the variables).

    Raises:
        TypeError: `grad_fn` lacks `variables` although `f` uses some.
        ValueError: `grad_fn` returns a wrong number of gradients.
    """
    if f is None:
        return custom_gradient
    function = f

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return fenced_call(function, *args, **kwargs)

    return decorated


def fenced_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `function(*x) -> (y, grad_fn)`: the `y`, whose gradient is `grad_fn(*dy)`.

    Raises:
        TypeError: `grad_fn` lacks `variables` although `function` uses some.
    """
    inputs = [convert_to_tensor(a) for a in args]
    graph = get_default_graph()
    if executing_eagerly():
        from opdock.autodiff.tape import GradientTape

        # What has run is in no graph in which one could look for variables.
        with GradientTape() as tape:
            result, grad_fn = function(*inputs, **kwargs)
        outputs = [convert_to_tensor(y) for y in nest.flatten(result)]
        used = list(tape.watched_variables())
    else:
        before = set(_variables(graph))
        result, grad_fn = function(*inputs, **kwargs)
        _check_new(set(_variables(graph)) - before)
        outputs = [convert_to_tensor(y) for y in nest.flatten(result)]
        used = used_variables(graph, outputs, inputs)
    reads = [convert_to_tensor(v) for v in used]
    n_out = len(outputs)

    def gradient(op: Operation, *grads: Any) -> list[Any]:
        return _apply(grad_fn, grads[:n_out], inputs, used, n_out)

    name = f"CustomGradient-{next(_counter)}"
    PYTHON_GRADIENTS[name] = gradient
    # One IdentityN ties the outputs to the inputs and hides what is in between.
    with graph.gradient_override_map({"IdentityN": name}):
        fenced = get("IdentityN")([*outputs, *inputs, *reads])
    return nest.pack_sequence_as(result, fenced[:n_out])


def _variables(graph: Any) -> list[Any]:
    return graph.get_collection("variables") + graph.get_collection("local_variables")  # type: ignore[no-any-return]


def _check_new(variables: set[Any]) -> None:
    """TypeError if the function made a variable whose reads cannot be told from one another."""
    if any(v.dtype._is_ref_dtype for v in variables):
        raise TypeError(
            "All variables used by `f` with @custom_gradient must be `ResourceVariable`s. Ensure "
            "that no `variable_scope` is created with `use_resource=False`."
        )


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes `f`, and through which gradients pass as if it did nothing.

    Variables that `f` uses get no gradient.
    """

    @custom_gradient
    def through(*args: Any, **kwargs: Any) -> Any:
        def grad(*grads: Any, variables: Any = None) -> Any:
            return grads if variables is None else (grads, [None] * len(variables))

        return f(*args, **kwargs), grad

    return through


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes `f`, and computes it again for its gradients.

    What `f` makes on the way need not be kept until then.
    """

    @custom_gradient
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        def grad(*grads: Any, variables: Any = None) -> Any:
            from opdock.autodiff.tape import GradientTape

            with GradientTape() as tape:
                again = [get("Identity")(convert_to_tensor(a)) for a in args]
                sources = [*again, *(variables or ())]
                for source in sources:
                    tape.watch(source)
                with get_default_graph().control_dependencies([g for g in grads if g is not None]):
                    results = f(*again, **kwargs)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            found = tape.gradient(results, sources, output_gradients=list(grads))
            of_args, of_variables = found[: len(again)], found[len(again) :]
            return of_args if variables is None else (of_args, of_variables)

        return f(*args, **kwargs), grad

    return recomputed


def used_variables(graph: Any, outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """Trainable variables on which the outputs depend by ways other than the inputs.

    In the body of a loop or a branch, what it captures leads on to the graph around it.
    """
    seen: set[Any] = set()
    stops = {x.op for x in inputs}
    stack = [y.op for y in outputs]
    captured = _captured(graph)
    while stack:
        op = stack.pop()
        if op in seen or op in stops:
            continue
        seen.add(op)
        stack.extend(t.op for t in op.inputs)
        if op in captured:
            stack.append(captured[op])
    return [v for v in graph.get_collection("trainable_variables") if v.op in seen]


def _captured(graph: Any) -> dict[Any, Any]:
    """What the parameters of a body, and of those around it, stand for outside of each."""
    found: dict[Any, Any] = {}
    while isinstance(graph, FuncGraph):
        found.update((inner.op, outer.op) for outer, inner in graph.captures)
        graph = graph.outer
    return found


def _apply(grad_fn: Any, grads: Any, inputs: list[Any], used: list[Any], n_out: int) -> list[Any]:
    variable_grads: list[Any] = []
    if used:
        try:
            found, variable_grads = grad_fn(*grads, variables=used)
        except TypeError as e:
            if "variables" in str(e):
                raise TypeError(
                    "If using @custom_gradient with a function that uses variables, then grad_fn "
                    "must accept a 'variables' keyword argument."
                ) from e
            raise
    else:
        found = grad_fn(*grads)
    # Without variables there may be an empty list of their gradients behind those of the inputs.
    input_grads = nest.flatten(found)
    if len(input_grads) != len(inputs):
        raise ValueError(
            f"custom_gradient function expected to return {len(inputs)} gradients but returned "
            f"{len(input_grads)} instead."
        )
    if len(variable_grads) != len(used):
        raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
    # The IdentityN has the outputs as its first inputs; what is behind them has no say.
    return [None] * n_out + input_grads + list(variable_grads)
