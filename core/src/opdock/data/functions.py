"""Functions of the user's as graphs: what datasets apply to elements, and what makes a dataset."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.data.util import structure
from opdock.graph.control.effects import acts
from opdock.graph.control.func_graph import FuncGraph, read_reference
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.rewriting.calls import tf_convert
from opdock.ops.rewriting.status import control_status_ctx
from opdock.ops.support.control_mode import inside_function

__all__ = ["DatasetFunction", "StructuredFunctionWrapper", "traced_factory"]

_USERS_CALL: Final = 4
"""How far the call of a transformation is from where its function is made."""


class DatasetFunction(FuncGraph):
    """The graph of a function that runs as often as a dataset likes. Names in it are its own.

    Args:
        name: of the function.
        outer: the graph in which the dataset is made.
    """

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__(name, outer)
        self._count = [0]
        self._names_in_use = {}
        self._name_stack = ""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.func_name

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors of the graph around that the function uses."""
        return [outer for outer, _ in self.captures]

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        # In TF a read shares the memory of the variable: each call sees what it holds by then.
        reference = read_reference(tensor)
        return super()._adopt(tensor, user) if reference is None else self._read(reference)

    def finish(self, outputs: list[Tensor]) -> None:
        """Sets the results; what has an effect runs, whoever asks for it."""
        self.outputs = [self._adopt(t) if t._op.graph is not self else t for t in outputs]
        self.targets = [op for op in self.get_operations() if acts(op)]
        self.forget_unused()


class StructuredFunctionWrapper:
    """A function from one nested structure to another.

    Args:
        func: of the components of an element.
        transformation_name: what errors call the transformation.
        dataset: whose elements the function takes; or else one of what follows.
        input_classes, input_shapes, input_types: what elements are, as TF 1 says it.
        input_structure: the structure of specs of elements.
        add_to_graph, use_legacy_function, defun_kwargs: accepted for TF's signature.

    Raises:
        ValueError: it is not clear what the function takes.
        TypeError: the function returns what no dataset can hold.
    """

    def __init__(
        self, func: Callable[..., Any], transformation_name: str, dataset: Any = None,
        input_classes: Any = None, input_shapes: Any = None, input_types: Any = None,
        input_structure: Any = None, add_to_graph: bool = True, use_legacy_function: bool = False,
        defun_kwargs: Any = None,
    ) -> None:  # fmt: skip
        legacy = (input_classes, input_shapes, input_types)
        given = [
            input_structure is not None,
            dataset is not None,
            any(x is not None for x in legacy),
        ]
        if sum(given) != 1 or (given[2] and any(x is None for x in legacy)):
            raise ValueError(
                "Either `dataset`, `input_structure` or all of `input_classes`, `input_shapes`, "
                "and `input_types` must be specified."
            )
        if dataset is not None:
            input_structure = dataset.element_spec
        elif given[2]:
            input_structure = structure.convert_legacy_structure(
                input_types, input_shapes, input_classes
            )
        self._input_structure = input_structure
        outer = get_default_graph()
        self._function = graph = DatasetFunction(_name(func, transformation_name, outer), outer)
        tables = len(outer.get_collection(GraphKeys.TABLE_INITIALIZERS))
        with graph.as_default(), inside_function():
            specs = structure.get_flat_tensor_specs(input_structure)
            arguments = [graph.add_input(s.dtype, s.shape.raw, "args") for s in specs]
            element = structure.from_compatible_tensor_list(input_structure, arguments)
            unpacked = element if should_unpack(element) else (element,)
            result = tf_convert(func, control_status_ctx())(*unpacked)
            if isinstance(result, list):
                # What gives a list, such as a Python function, means several components.
                result = tuple(result)
            try:
                self._output_structure = structure.type_spec_from_value(result)
            except (TypeError, ValueError):
                raise TypeError(
                    f"Unsupported return value from function passed to {transformation_name}: "
                    f"{result}."
                ) from None
            graph.finish(structure.to_tensor_list(self._output_structure, result))
        if len(outer.get_collection(GraphKeys.TABLE_INITIALIZERS)) > tables:
            warnings.warn(
                f"Creating resources inside a function passed to {transformation_name} is not "
                "supported. Create each resource outside the function, and capture it inside the "
                "function to use it.",
                stacklevel=_USERS_CALL,
            )
        if graph._seed_used and graph.seed and graph.seed == outer.seed:
            warnings.warn(
                f"Seed {outer.seed} from outer graph might be getting used by function "
                f"{graph.func_name}, if the random op has not been provided any seed. Explicitly "
                "set the seed in the function if this is not the intended behavior.",
                stacklevel=_USERS_CALL,
            )

    @property
    def function(self) -> DatasetFunction:
        """The graph."""
        return self._function

    @property
    def captured(self) -> list[Tensor]:
        """The tensors of the graph around that the function uses."""
        return self._function.captured_inputs

    @property
    def output_structure(self) -> Any:
        """The structure of specs of what the function returns."""
        return self._output_structure

    @property
    def output_classes(self) -> Any:
        """The classes of what the function returns."""
        return structure.legacy_classes(self._output_structure)

    @property
    def output_shapes(self) -> Any:
        """The shapes of what the function returns."""
        return structure.legacy_shapes(self._output_structure)

    @property
    def output_types(self) -> Any:
        """The types of what the function returns."""
        return structure.legacy_types(self._output_structure)


def should_unpack(element: Any) -> bool:
    """Whether the components of an element are arguments of their own."""
    return type(element) is tuple


def _name(func: Any, transformation: str, outer: Graph) -> str:
    """A name that no other function of the graph has."""
    what = transformation.replace(".", "_").removesuffix("()")
    inner = getattr(func, "__name__", type(func).__name__)
    text = re.sub(r"\W", "_", f"{what}_{inner}")
    root: Any = outer
    while getattr(root, "outer", None) is not None:
        root = root.outer
    count = root.__dict__["_dataset_functions"] = root.__dict__.get("_dataset_functions", 0) + 1
    return f"{text}_{count}"


# ---------------------------------------------------------------- functions without captures
class _ByValue(FuncGraph):
    """A function that copies what it uses of the graph around."""

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__(name, outer)
        self._names_in_use = {}
        self._name_stack = ""
        self._copies: dict[Operation, Operation] = {}

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        return self._copied(tensor._op).outputs[tensor.value_index]

    def _copied(self, op: Operation) -> Operation:
        found = self._copies.get(op)
        if found is None:
            _check_copyable(op)
            inputs = [t if t.graph is self else self._adopt(t) for t in op.inputs]
            types = [t._dtype for t in op.outputs]
            with self.control_dependencies(None):
                name = self.unique_name(op.name)
                found = self._create_op(op.spec, name, inputs, dict(op.attrs), types)
            for mine, theirs in zip(found.outputs, op.outputs, strict=True):
                mine._shape = theirs._shape
            self._copies[op] = found
        return found


def _check_copyable(op: Operation) -> None:
    if op.spec.traits.placeholder:
        raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
    makes_dataset = bool(op.outputs) and op.outputs[0].dtype is dtypes.variant
    if (op.spec.stateful and not makes_dataset) or any(t._dtype._is_ref_dtype for t in op.outputs):
        raise ValueError(
            f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value."
        )


def traced_factory(make: Callable[[], Tensor]) -> FuncGraph:
    """A function without arguments that makes what `make` makes, a dataset.

    Raises:
        ValueError: it depends on a placeholder, a variable or other state.
    """
    outer = get_default_graph()
    graph = _ByValue(_name(make, "make_dataset", outer), outer)
    with graph.as_default():
        result = make()
        graph.outputs = [result if result._op.graph is graph else graph._adopt(result)]
    return graph
