"""`tf.wrap_function`: code of TensorFlow 1, traced once, as a function that is called.

As in a session, nothing runs but what the results depend on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from opdock.graph.control.function_op import DefinedGraph, behind, copy_operations
from opdock.graph.nodes.composite import CompositeTensor, IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.variable_scope import variable_store
from opdock.ops.registry import get
from opdock.util import nest

__all__ = ["wrap_function"]

_numbers: Final[Iterator[int]] = itertools.count()


class WrappedFunction:
    """A traced function; a call adds one operation to the graph that is being built.

    Attributes:
        graph: its operations.
        variables: those that it made, which belong to the program.
        structured_input_signature: what its arguments are like, or what `prune` was told.
        structured_outputs: its results in the structure in which it gave them; None for operations.
    """

    def __init__(
        self, graph: DefinedGraph, arguments: Sequence[Tensor], results: Any,
        variables: Sequence[Any], signature: Sequence[Any],
    ) -> None:  # fmt: skip
        self.graph = graph
        self._signature = list(signature)
        self.variables = tuple(variables)
        self.structured_input_signature: Any = signature
        self._arguments = list(arguments)
        # Operations run; tensors are the results.
        flat = nest.flatten(results, expand_composites=True)
        graph.targets = [r for r in flat if isinstance(r, Operation)]
        graph.outputs = [r for r in flat if isinstance(r, Tensor)]
        self.structured_outputs = nest.map_structure(
            lambda r: None if isinstance(r, Operation) else r, results, expand_composites=True
        )

    @property
    def name(self) -> str:
        """The name that it has in a library of functions."""
        return self.graph.func_name

    @property
    def inputs(self) -> list[Tensor]:
        """The parameters, those for what it uses from outside last."""
        return self.graph.inputs

    @property
    def outputs(self) -> list[Tensor]:
        """The results, flattened."""
        return self.graph.outputs

    def __call__(self, *args: Any) -> Any:
        """Calls the function.

        Args:
            *args: what fits the signature, nested as there; without its Python values.

        Returns:
            The results in their structure. A function without results gives the operation.

        Raises:
            TypeError: another number of tensors.
            ValueError: a tensor has another type or shape.
        """
        wanted = [s for s in self._signature if any(map(_is_spec, nest.flatten(s)))]
        if len(args) != len(wanted):
            raise TypeError(f"{self.name} takes {len(wanted)} arguments, got {len(args)}: {args}")
        found = nest.flatten_up_to(wanted, list(args))
        kinds = map(_is_spec, nest.flatten(wanted))
        given = [
            part for a, is_spec in zip(found, kinds, strict=True) if is_spec for part in _parts(a)
        ]
        graph = get_default_graph()
        inputs = [_fitting(a, p) for a, p in zip(given, self._arguments, strict=True)]
        inputs += [outer for outer, _ in self.graph.captures]
        inputs = [t if t._op.graph is graph else graph._adopt(t) for t in inputs]
        call = get("StatefulPartitionedCall" if self.graph.stateful else "PartitionedCall")
        types = [t.dtype.base_dtype for t in self.outputs]
        made = call(inputs, Tout=types, f=self.graph)
        if not self.outputs and self.structured_outputs is None:
            return made
        results = iter(made if types else ())

        def result(inner: Any) -> Any:
            if not isinstance(inner, Tensor):
                return inner
            outer = next(results)
            outer.set_shape(inner.shape)
            return outer

        return nest.map_structure(result, self.structured_outputs, expand_composites=True)

    def prune(
        self, feeds: Any, fetches: Any, name: str | None = None, input_signature: Any = None
    ) -> WrappedFunction:
        """The function from some of its tensors to others.

        Args:
            feeds: the tensors that become arguments, nested, as such or by name.
            fetches: tensors and operations, nested, as such or by name.
            name: the new function's; "pruned" by default.
            input_signature: what `structured_input_signature` is to be.

        Raises:
            ValueError: a feed is no tensor, or something is of another graph.
        """
        own = {inner for _, inner in self.graph.captures}
        found = [self._element(f) for f in nest.flatten(feeds, expand_composites=True)]
        if not all(isinstance(f, Tensor) for f in found):
            raise ValueError("Feeds must be tensors.")
        fed = [f for f in found if f not in own]
        wanted = nest.map_structure(self._element, fetches, expand_composites=True)
        outer = self.graph.outer or get_default_graph()
        graph = DefinedGraph(_unique(name or "pruned"), outer)
        with graph.as_default():
            arguments = [graph.add_input(t.dtype, t.raw_shape, t.op.name) for t in fed]
            values = dict(zip(fed, arguments, strict=True))
            ends = nest.flatten(wanted, expand_composites=True)
            needed = behind([getattr(e, "op", e) for e in ends if e not in values], values)
            for away, inner in self.graph.captures:
                if inner.op in needed:
                    values[inner] = graph._adopt(away)
            _refuse_open(needed, values)
            made = copy_operations(self.graph, needed, values)
        results = nest.map_structure(
            lambda e: made[e] if isinstance(e, Operation) else values[e], wanted,
            expand_composites=True,
        )  # fmt: skip
        specs = [TensorSpec.from_tensor(t) for t in arguments]
        pruned = WrappedFunction(graph, arguments, results, self.variables, specs)
        pruned.structured_input_signature = input_signature
        return pruned

    def _element(self, thing: Any) -> Any:
        """A tensor or operation of the graph, which may be given by name."""
        found = self.graph.as_graph_element(thing) if isinstance(thing, str) else thing
        if getattr(found, "graph", None) is not self.graph:
            raise ValueError(
                "Can only prune function whose feeds and fetches are from this graph "
                f"({self.graph}). Input {found} is from graph {getattr(found, 'graph', None)}"
            )
        return found


def _is_spec(thing: Any) -> bool:
    return isinstance(thing, TypeSpec)


def _parts(given: Any) -> list[Any]:
    """The tensors of which an argument is made."""
    parts: list[Any] = [given]
    if isinstance(given, CompositeTensor):
        parts = nest.flatten(given, expand_composites=True)
    return parts


def _unique(name: str) -> str:
    return f"__inference_{name}_{next(_numbers)}"


def _fitting(given: Any, parameter: Tensor) -> Tensor:
    tensor = convert_to_tensor(given, parameter.dtype.base_dtype)
    if not tensor.shape.is_compatible_with(parameter.shape):
        raise ValueError(
            f"The argument '{parameter.op.name}' has shape {parameter.shape}, got {tensor}"
        )
    return tensor


def _refuse_open(needed: set[Operation], values: dict[Tensor, Tensor]) -> None:
    """Raises ValueError for an argument of the whole function that the part needs unfed."""
    for op in needed:
        if op.type == "_Arg" and op.outputs[0] not in values:
            raise ValueError(f"The fetches depend on '{op.name}', which is not among the feeds.")


def _result(found: Any) -> Any:
    """What a function returned, as a tensor, an operation or None."""
    if found is None or isinstance(found, (Operation, IndexedSlices, CompositeTensor)):
        return found
    return convert_to_tensor(found)


def wrap_function(fn: Callable[..., Any], signature: Any, name: str | None = None) -> Any:
    """Traces a function of TensorFlow 1 once; what comes back is called with tensors.

    Variables that it makes are the program's, and each call works on the same ones. Unlike those of
    `tf.function`, operations run only where a result depends on them, or where they are results.

    Args:
        fn: called once, while the graph is built.
        signature: nested specs of tensors, sparse and ragged ones too, for which it gets
            placeholders, and Python values.
        name: a part of the function's name.

    Returns:
        A function with `inputs`, `outputs`, `graph`, `variables`, `structured_outputs`, and
        `prune(feeds, fetches)`, the function from some of its tensors to others.
    """
    outer = get_default_graph()
    variable_store()  # the function's graph and the one around it share it from now on
    graph = DefinedGraph(_unique(f"wrapped_function_{name}" if name else "wrapped_function"), outer)
    variables: list[Any] = []
    arguments: list[Tensor] = []

    def placeholder(spec: Any) -> Any:
        if not _is_spec(spec):
            return spec
        if not isinstance(spec, TensorSpec):
            return spec._from_components(nest.map_structure(placeholder, spec._component_specs))
        arguments.append(graph.add_input(spec.dtype, spec.shape.raw, spec.name or "args"))
        return arguments[-1]

    def outside(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        with outer.as_default():
            made = next_creator(**{**kwargs, "use_resource": True})
        variables.append(made)
        return made

    with graph.as_default(), variable_creator_scope(outside):
        given = nest.map_structure(placeholder, list(signature))
        results = nest.map_structure(_result, fn(*given))
        results = nest.map_structure(
            lambda r: graph._adopt(r) if isinstance(r, Tensor) and r._op.graph is not graph else r,
            results, expand_composites=True,
        )  # fmt: skip
    return WrappedFunction(graph, arguments, results, variables, signature)
