"""A function for arguments of fixed types, whose body each call adds to the graph.

It is made by tracing a Python function (`tracing.py`), or read from a SavedModel. As its body
becomes a part of the graph, it is optimised and differentiated like anything else there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opdock import shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph, copy_operations
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.tracked_attributes import SavedFunction
from opdock.ops.identity import identity
from opdock.ops.registry import get
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["ConcreteFunction", "add_body", "plain_name", "scope_of"]


def add_body(body: FuncGraph, arguments: Sequence[Tensor]) -> tuple[list[Tensor], list[Operation]]:
    """Adds a function's body to the default graph.

    Returns:
        Its results, which wait for its effects, and the operations that are the effects.
    """
    graph = get_default_graph()
    given = [t if t._op.graph is graph else graph._adopt(t) for t in arguments]
    values: dict[Tensor, Tensor] = dict(zip(body.inputs, given, strict=True))
    made = copy_operations(body, body.needed(), values)
    effects = [made[op] for op in body.targets if op in made]
    results = [values[t] for t in body.outputs]
    if effects:
        with control_dependencies(effects):
            results = [identity(t) for t in results]
    return results, effects


def run_body(body: FuncGraph, arguments: Sequence[Tensor], graph: Graph) -> list[Tensor]:
    """Runs a function's body as one operation, in a graph whose operations run as they are made.

    Returns:
        Its results.
    """
    function = graph._as_run(body)
    call = get("StatefulPartitionedCall" if function.stateful else "PartitionedCall")
    made = call(list(arguments), Tout=[t.dtype.base_dtype for t in function.outputs], f=function)
    return list(made[: len(body.outputs)]) if function.outputs else []


def _of_ranks(body: FuncGraph, ranks: Sequence[int | None]) -> FuncGraph:
    """A function's body for first parameters of other ranks."""
    name = f"{body.func_name}_{'_'.join(map(str, ranks))}"
    made = DefinedGraph(name, body.outer or get_default_graph())
    with made.as_default():
        known: list[Shape] = [None if rank is None else (None,) * rank for rank in ranks]
        known += [t.raw_shape for t in body.inputs[len(ranks) :]]
        values = {
            t: made.add_input(t.dtype, shape, t.op.name)
            for t, shape in zip(body.inputs, known, strict=True)
        }
        copies = copy_operations(body, body.needed(), values)
        made.outputs = [values[t] for t in body.outputs]
        made.targets = [copies[op] for op in body.targets if op in copies]
    return made


class ConcreteFunction(Trackable, SavedFunction):
    """A function for arguments of fixed types.

    Args:
        name: its name in a library of functions.
        body: gives the body; it is asked when it is needed first.
        captures: gives what the function uses from outside, in the order of its last parameters.
        signature: positional and named arguments, with specs for tensors.
        outputs: the results in their structure, with specs for tensors.

    Attributes:
        structured_input_signature: `signature`.
        structured_outputs: `outputs`.
    """

    def __init__(
        self, name: str, body: Callable[[], FuncGraph], captures: Callable[[], list[Tensor]],
        signature: Any, outputs: Any,
    ) -> None:  # fmt: skip
        self.name = name
        self._body, self._captures = body, captures
        self.structured_input_signature = signature
        self.structured_outputs = outputs
        # How it is called: names of the tensors, and how many may be given without.
        self._arg_keywords: list[str] | None = None
        self._num_positional_args = 0
        self._of_ranks: dict[tuple[int | None, ...], FuncGraph] = {}

    @property
    def graph(self) -> FuncGraph:
        """The body."""
        return self._body()

    @property
    def function_graph(self) -> FuncGraph:
        """The body: what an op's attribute means that names the function."""
        return self._body()

    @property
    def inputs(self) -> list[Tensor]:
        """The parameters of the body, captures included."""
        return list(self._body().inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The results in the body."""
        return list(self._body().outputs)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What the function uses from outside."""
        return self._captures()

    @property
    def output_dtypes(self) -> Any:
        """The types of the results, in their structure."""
        return self._of_outputs(lambda spec: spec.dtype)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the results, in their structure."""
        return self._of_outputs(lambda spec: spec.shape)

    def _of_outputs(self, ask: Callable[[Any], Any]) -> Any:
        return nest.map_structure(
            lambda leaf: ask(leaf) if isinstance(leaf, TensorSpec) else leaf,
            self.structured_outputs, expand_composites=True,
        )  # fmt: skip

    def apply(self, values: Any) -> Any:
        """The results for arguments in the structure of the signature.

        Raises:
            TypeError, ValueError: an argument does not convert to the type of its parameter.
        """
        given = list(_tensors(self.structured_input_signature, values))
        graph = get_default_graph()
        if graph.eager:
            made = run_body(self._body_for(given), [*given, *self._captures()], graph)
            return _filled(self.structured_outputs, made) if made else self.structured_outputs
        with name_scope(scope_of(plain_name(self.name))):
            results, effects = add_body(self._body(), [*given, *self._captures()])
        flat = nest.flatten(self.structured_outputs, expand_composites=True)
        if not flat or all(leaf is None for leaf in flat):
            return effects[-1] if effects and not results else self.structured_outputs
        return _filled(self.structured_outputs, results)

    def _body_for(self, given: Sequence[Tensor]) -> FuncGraph:
        """The body that runs as one operation for some arguments, captures apart.

        As in TF it takes other shapes than it was traced for. One is made of it then that says
        nothing of sizes.
        """
        body = self._body()
        if all(
            shapes.is_compatible(t.raw_shape, inner.raw_shape)
            for t, inner in zip(given, body.inputs, strict=False)
        ):
            return body
        ranks = tuple(None if t.raw_shape is None else len(t.raw_shape) for t in given)
        if ranks not in self._of_ranks:
            self._of_ranks[ranks] = _of_ranks(body, ranks)
        return self._of_ranks[ranks]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results.

        Raises:
            AssertionError: the function is one of several, which its arguments choose.
            TypeError: an argument is missing, or there is none of a name or place.
        """
        args = tuple(part for value in args for part in _parts(value))
        names = self._arg_keywords
        if names is None:
            raise AssertionError(
                "Tried to call a concrete function obtained from an internal API through the "
                "public interface. Use get_concrete_function instead."
            )
        allowed = (
            max(self._num_positional_args, 1) if len(names) == 1 else self._num_positional_args
        )
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if (
            len(args) > allowed
            or len(given) != len(args) + len(kwargs)
            or sorted(given) != sorted(names)
        ):
            raise TypeError(
                f"{plain_name(self.name)} takes {names}, got "
                f"{[*names[: len(args)], *sorted(kwargs)]}"
            )
        return self.apply(self._packed([given[name] for name in names]))

    def _packed(self, tensors: Sequence[Any]) -> Any:
        """Tensors in the structure of the signature, with its values of Python between them."""
        return _filled(self.structured_input_signature, tensors)


def _filled(structure: Any, tensors: Sequence[Any]) -> Any:
    """A structure with tensors in the places of their specs, those of composites among them."""
    found = iter(tensors)
    flat = nest.flatten(structure, expand_composites=True)
    return nest.pack_sequence_as(
        structure, [next(found) if isinstance(leaf, TensorSpec) else leaf for leaf in flat],
        expand_composites=True,
    )  # fmt: skip


def _parts(value: Any) -> Sequence[Any]:
    """The tensors that a composite is made of; what is none is its own part."""
    if not isinstance(value, CompositeTensor):
        return (value,)
    parts: list[Any] = nest.flatten(value, expand_composites=True)
    return parts


def _tensors(signature: Any, values: Any) -> Iterator[Tensor]:
    """The tensors that arguments are, in the order of the parameters."""
    parts = nest.flatten_up_to(signature, values, check_types=False)
    for spec, value in zip(nest.flatten(signature), parts, strict=True):
        if isinstance(spec, TensorSpec):
            yield convert_to_tensor(value, spec.dtype)
        elif isinstance(spec, TypeSpec):
            yield from nest.flatten(value, expand_composites=True)


def scope_of(name: str) -> str:
    """A name scope for a function's name, which need be none: TensorFlow 2 has "<lambda>"."""
    return re.sub(r"^[^A-Za-z0-9.]+|[^A-Za-z0-9_./-]", "", name) or "function"


def plain_name(name: str) -> str:
    """A function's name without what TensorFlow puts around the one in the program."""
    bare = name.removeprefix("__inference_").removeprefix("signature_wrapper_").strip("_")
    return bare.rpartition("_")[0] or bare or "function"
