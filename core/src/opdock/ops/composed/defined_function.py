"""`Defun`: Python functions as functions of a graph's library, called as ops of their name.

TensorFlow has it as `tensorflow.python.framework.function`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph, FunctionSpec, functions_of
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.serial.function_def import FunctionLibraryReader
from opdock.graph.serial.function_library import add_function
from opdock.graph.serial.function_writer import function_def
from opdock.graph.serial.graphdef import build_node
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.variable_scope import (
    get_variable_scope,
    variable_scope,
    variable_store,
)  # fmt: skip
from opdock.io import protos
from opdock.ops.calls import symbolic_gradient_op

__all__: list[str] = []

_MANY = 1_000_000


class Defun:
    """Decorator that makes a function of tensors a function of the graph's library.

    A call adds one operation, whose type is the function's name. Tensors of the graph that the
    function uses become further arguments. Without types the function takes arguments of any type,
    and there is one function in the library for each combination.

    Args:
        *input_types: the types of the arguments.
        func_name: the name in the library; made from the Python function's if not given.
        grad_func: another such function, from the arguments and the results' gradients to the
            arguments' gradients.
        python_grad_func: a Python function ``(op, *grads)`` that builds the gradient of a call.
        out_names: the names of the results.
        shape_func: from a call's operation to the static shapes of its results.
        capture_by_value: whether what the function uses from outside is computed in it again.
        whitelisted_stateful_ops: stateful operations that may be computed again.
        capture_resource_var_by_value: whether variables that the function gets are read outside.
        noinline, compiled, separate_compiled_gradients: attributes of the function.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = input_types
        self._kwargs = kwargs

    def __call__(self, func: Callable[..., Any]) -> Any:
        """The function as one of the library.

        Raises:
            ValueError: it has defaults or keyword arguments, or not as many arguments as types.
        """
        if not callable(func):
            raise ValueError(f"function {func} must be callable")
        names, most = _arguments(func)
        if self._input_types:
            if not len(names) <= len(self._input_types) <= most:
                raise ValueError(
                    "The function has fewer arguments than the number of specified input types."
                )
            return _DefinedFunction(func, names, self._input_types, **self._kwargs)
        if most == 0:
            return _DefinedFunction(func, [], [], **self._kwargs)
        return _OverloadedFunction(func, names, **self._kwargs)


def _arguments(func: Callable[..., Any]) -> tuple[list[str], int]:
    """The names of a function's arguments, and how many it takes at most."""
    spec = inspect.getfullargspec(func)
    if spec.varkw or spec.defaults:
        raise ValueError(
            "function with argument defaults or keywords arguments are not supported. "
            f"{func} has defaults {spec.defaults} and keywords {spec.varkw}."
        )
    names = spec.args[1:] if inspect.ismethod(func) else spec.args
    return names, _MANY if spec.varargs else len(names)


class _DefinedFunction:
    """A function for arguments of certain types, which is traced when it is first needed."""

    def __init__(
        self, func: Callable[..., Any], argnames: Sequence[str], input_types: Sequence[Any],
        func_name: str | None = None, grad_func: Any = None, python_grad_func: Any = None,
        out_names: Sequence[str] | None = None, shape_func: Any = None,
        capture_by_value: bool = False, whitelisted_stateful_ops: Any = None,
        capture_resource_var_by_value: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._func = func
        self._argnames = [
            argnames[i] if i < len(argnames) else f"arg{i}" for i in range(len(input_types))
        ]
        self._input_types = tuple(dtypes.as_dtype(t).base_dtype for t in input_types)
        self._func_name = func_name
        self._grad_func: _DefinedFunction | None = grad_func
        self._python_grad_func = python_grad_func
        self._out_names = list(out_names or ())
        self._shape_func = shape_func
        self._by_value = capture_by_value
        self._may_copy = tuple(whitelisted_stateful_ops or ())
        self._reads_outside = capture_resource_var_by_value
        self._attrs = kwargs
        self._devices = list(get_default_graph()._scopes.devices)
        self._made: FunctionSpec | None = None
        self._definition: Any = None

    # ------------------------------------------------------------ what it is
    @property
    def _spec(self) -> FunctionSpec:
        if self._made is None:
            self._made = self._trace()
        return self._made

    @property
    def _graph(self) -> DefinedGraph:
        graph = self._spec.function
        assert isinstance(graph, DefinedGraph)
        return graph

    @property
    def name(self) -> str:
        """The name in the library, which is the op type of calls."""
        return self._spec.name

    @property
    def function_graph(self) -> FuncGraph:
        """The body: what an op's attribute means that names the function."""
        return self._spec.function

    @property
    def definition(self) -> Any:
        """The FunctionDef."""
        if self._definition is None:
            self._definition = function_def(self._spec)
        return self._definition

    @property
    def _signature(self) -> Any:
        return self.definition.signature

    @property
    def declared_input_types(self) -> tuple[DType, ...]:
        """The types of the arguments."""
        return self._input_types

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What the function uses from outside, in the order of the further arguments."""
        return [outer for outer, _ in self._graph.captures]

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """Names and types of the stateful operations in the function."""
        made = self._graph.get_operations()
        return [(op.name, op.type) for op in made if op.spec.stateful]

    @property
    def python_grad_func(self) -> Any:
        """The Python function that builds the gradient, if there is one."""
        return self._python_grad_func

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that is the gradient, if there is one."""
        return self._grad_func.name if self._grad_func else None

    def set_grad_func(self, grad_func: _DefinedFunction) -> None:
        """Gives the function a gradient; it has none of its own yet."""
        if self._grad_func is not None:
            raise ValueError(f"Function {self.name} has a gradient function already")
        self._grad_func = grad_func
        if self._made is not None:
            self._attach_gradient(self._made)

    # ------------------------------------------------------------ tracing
    def _trace(self) -> FunctionSpec:
        base = str(self._func_name or getattr(self._func, "__name__", "function"))
        variable_store()  # the function's graph and the one around it share it from now on
        graph = DefinedGraph(base, get_default_graph(), self._by_value, self._may_copy)
        graph._scopes.devices = self._devices
        with graph.as_default():
            parameters = [
                graph.add_input(dtype, None, name)
                for name, dtype in zip(self._argnames, self._input_types, strict=True)
            ]
            with variable_scope("", custom_getter=self._getter(graph)):
                found = self._func(*parameters)
            graph.outputs = [convert_to_tensor(t) for t in _results(found, base)]
            graph.outputs = [
                graph._adopt(t) if t._op.graph is not graph else t for t in graph.outputs
            ]
        if self._out_names and len(self._out_names) != len(graph.outputs):
            raise errors.InvalidArgumentError(
                None, None,
                "output names must be either empty or equal in size to outputs. output names size "
                f"= {len(self._out_names)} outputs size = {len(graph.outputs)}",
            )  # fmt: skip
        graph.targets = [op for op in graph.get_operations() if op.spec.stateful]
        spec = FunctionSpec(
            graph, self._out_names, _attributes(base, self._attrs), inspect.getdoc(self._func) or ""
        )
        if self._func_name is None:
            if self._grad_func is not None:
                base += f"_{self._grad_func.name}"
            # Equal functions have one name in all processes, different ones never.
            digest = hashlib.sha1(
                function_def(spec).SerializeToString(deterministic=True), usedforsecurity=False
            ).hexdigest()
            spec.name = graph.func_name = f"{base}_{digest[:8]}"
        if self._grad_func is not None and self._python_grad_func is not None:
            raise ValueError(f"Gradient defined twice for function {spec.name}")
        spec.python_gradient = self._python_grad_func
        self._attach_gradient(spec)
        return spec

    def _attach_gradient(self, spec: FunctionSpec) -> None:
        if self._grad_func is not None:
            spec.gradient_spec = self._grad_func._spec
            spec.function.__dict__["_gradient_spec"] = spec.gradient_spec

    def _getter(self, graph: DefinedGraph) -> Callable[..., Any]:
        """Variables that the function gets are made outside of it."""
        outer = graph.outer
        assert outer is not None
        with outer.as_default():
            scope, store = get_variable_scope(), variable_store()

        def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            with outer.as_default():
                variable = scope.get_variable(store, name, *args, **kwargs)
            graph.variables.append(variable)
            if self._reads_outside and isinstance(variable, ResourceVariable):
                with outer.as_default():
                    return variable.value()
            return variable

        return get

    # ------------------------------------------------------------ calls
    def add_to_graph(self, g: Graph) -> None:
        """Makes the function one of a graph's library.

        Raises:
            InvalidArgumentError: the graph has another one of that name.
        """
        add_function(g, self._spec)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function: its result, a tuple of several, or the operation if there is none.

        Raises:
            ValueError: another number of arguments, or an unknown keyword.
        """
        graph = get_default_graph()
        spec = self._spec
        name = kwargs.pop("name", None) or spec.name
        attrs = _attributes(spec.name, kwargs)
        inputs = [convert_to_tensor(a) for a in args] + self.captured_inputs
        if len(inputs) != len(spec.function.inputs):
            raise ValueError(
                f"Expected number of arguments: {len(spec.function.inputs)}, "
                f"received: {len(inputs)}"
            )
        self.add_to_graph(graph)
        inputs = [t if t._op.graph is graph else graph._adopt(t) for t in inputs]
        op = build_node(graph, spec, graph.unique_name(name), inputs, attrs)
        if self._shape_func is not None:
            _set_shapes(op, self._shape_func(op))
        if not op.outputs:
            return op
        return op.outputs[0] if len(op.outputs) == 1 else tuple(op.outputs)


def _results(found: Any, name: str) -> list[Any]:
    if found is None:
        return []
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    if any(result is None for result in results):
        raise ValueError(f"Function {name} can not return None.")
    return results


def _set_shapes(op: Any, known: Sequence[Any]) -> None:
    if len(known) != len(op.outputs):
        raise ValueError(f"shape_func produced {len(known)} shapes for {len(op.outputs)} outputs")
    for tensor, shape in zip(op.outputs, known, strict=True):
        tensor.set_shape(shape)


def _attributes(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The attributes that keywords stand for.

    Raises:
        ValueError: a keyword is unknown, or its value is of a type that no attribute has.
    """
    left = dict(kwargs)
    attrs: dict[str, Any] = {}
    if (noinline := left.pop("noinline", None)) is not None:
        attrs["_noinline"] = bool(noinline)
    attrs["_disable_call_shape_inference"] = True
    compiled, separate = left.pop("compiled", None), left.pop("separate_compiled_gradients", None)
    if compiled is not None:
        attrs |= {
            "_XlaCompile": bool(compiled),
            "_XlaSeparateCompiledGradients": bool(separate),
            "_XlaScope": get_default_graph()._scope_attrs.get("_XlaScope", f"function_{name}"),
        }
    for key in list(left):
        if key.startswith("experimental_") or key in ("_implements", "_reference"):
            kinds = (bool, int, float, str) if key.startswith("experimental_") else (str,)
            if not isinstance(left[key], kinds):
                raise ValueError(
                    f"Unsupported attribute type for {key} with type {type(left[key])}"
                )
            attrs[key] = left.pop(key)
    if left:
        raise ValueError(f"Unknown keyword arguments: {left.keys()}")
    return attrs


class _LibraryFunction(_DefinedFunction):
    """A function that comes from a FunctionDef; what it calls, the library or the graph has."""

    def __init__(self, definition: Any, library: Any, grad_func: Any) -> None:
        signature = definition.signature
        super().__init__(
            self._trace, [arg.name for arg in signature.input_arg],
            [arg.type for arg in signature.input_arg], signature.name, grad_func,
        )  # fmt: skip
        self._definition = definition
        self._library = library

    @property
    def captured_inputs(self) -> list[Tensor]:
        """Nothing: all that the function takes is among its declared arguments."""
        return []

    def _trace(self) -> FunctionSpec:
        library = protos.GraphDef().library
        library.CopyFrom(self._library)
        there = {f.signature.name for f in library.function}
        for spec in functions_of(get_default_graph()).values():
            if spec.name not in there:
                library.function.add().CopyFrom(function_def(spec))
        return FunctionLibraryReader(library, get_default_graph()).spec(self.name)

    @property
    def name(self) -> str:
        """The name in the library."""
        return str(self._func_name)


def _from_definition(definition: Any, grad_func: Any = None) -> _DefinedFunction:
    """The function of a FunctionDef."""
    library = protos.GraphDef().library
    library.function.add().CopyFrom(definition)
    return _LibraryFunction(definition, library, grad_func)


def from_library(lib: Any) -> list[_DefinedFunction]:
    """The functions of a FunctionDefLibrary, with their gradients.

    Raises:
        ValueError: the gradients speak of functions that are not there, or go in circles.
    """
    definitions = {f.signature.name: f for f in lib.function}
    gradients = {g.function_name: g.gradient_func for g in lib.gradient}
    for name in (n for pair in gradients.items() for n in pair if n not in definitions):
        raise ValueError(f"FunctionDefLibrary missing '{name}' FunctionDef\n{lib}")
    made: dict[str, _DefinedFunction] = {}
    while len(made) < len(definitions):
        ready = [
            n for n in definitions
            if n not in made and (n not in gradients or gradients[n] in made)
        ]  # fmt: skip
        if not ready:
            raise ValueError(f"FunctionDefLibrary contains cyclic gradient functions!\n{lib}")
        for name in ready:
            gradient = made.get(gradients.get(name, ""))
            made[name] = _LibraryFunction(definitions[name], lib, gradient)
    return list(made.values())


class _OverloadedFunction:
    """A function for arguments of any types: one of the library for each combination."""

    def __init__(
        self, func: Callable[..., Any], argnames: Sequence[str], func_name: str | None = None,
        grad_func: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._func = func
        self._argnames = argnames
        self._func_name = func_name
        self._grad_func: _OverloadedFunction | None = grad_func
        self._kwargs = kwargs
        self._overload: dict[tuple[DType, ...], _DefinedFunction] = {}

    def instantiate(self, input_types: Sequence[Any]) -> _DefinedFunction:
        """The function for arguments of these types."""
        key = tuple(dtypes.as_dtype(t).base_dtype for t in input_types)
        found = self._overload.get(key)
        if found is None:
            name = self._func_name and f"{self._func_name}_{''.join(map(_abbreviated, key))}"
            found = _DefinedFunction(self._func, self._argnames, key, name, **self._kwargs)
            spec = found._spec
            if self._grad_func is not None:
                outputs = [t.dtype.base_dtype for t in spec.function.outputs]
                found.set_grad_func(self._grad_func.instantiate([*key, *outputs]))
            self._overload[key] = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function for the types of these arguments."""
        tensors = [convert_to_tensor(a) for a in args]
        return self.instantiate([t.dtype for t in tensors])(*tensors, **kwargs)


def _abbreviated(dtype: DType) -> str:
    """A type as names of functions have it."""
    special = {dtypes.string: "s", dtypes.bool: "b", dtypes.uint8: "i8", dtypes.bfloat16: "b16"}
    if dtype in special:
        return special[dtype]
    kind = dtype.name.rstrip("0123456789")
    first = {"float": "f", "int": "i", "uint": "u", "complex": "c", "qint": "qi", "quint": "qu"}
    return first[kind] + dtype.name.removeprefix(kind)


def _extra(kind: str) -> list[Any]:
    graph = get_default_graph()
    return list(getattr(graph, kind)) if isinstance(graph, DefinedGraph) else []


def get_extra_vars() -> list[Any]:
    """The variables that the function that is being traced has got."""
    return _extra("variables")


def get_extra_inputs() -> list[Tensor]:
    """What the function that is being traced uses from outside."""
    return [outer for outer, _ in _extra("captures")]


def get_extra_args() -> list[Tensor]:
    """The parameters that stand for what the function uses from outside."""
    return [inner for _, inner in _extra("captures")]


def symbolic_gradient(input: Any, Tout: Any, f: Any, name: str | None = None) -> list[Tensor]:
    """The gradient of a function of the library: of its arguments, from those of its results.

    Args:
        input: the arguments, then the gradients of the results.
        Tout: the types of the arguments.
        f: the function, or its name.
        name: a name for the operation.
    """
    known = functions_of(get_default_graph())
    if isinstance(f, _DefinedFunction):
        f.add_to_graph(get_default_graph())
        f = f.name
    function = known[f].function if f in known else f
    out: list[Tensor] = symbolic_gradient_op(input, Tout=list(Tout), f=function, name=name)
    return out
