"""The op registry: `define_op`, and the definitions that every op family hangs its parts on."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from opdock import errors, shapes
from opdock.dtypes import DType, resource
from opdock.graph.nodes import opdef
from opdock.graph.nodes._families import OPS
from opdock.graph.nodes.declared import check_declared
from opdock.graph.nodes.dispatch import of_any_function, or_others
from opdock.graph.nodes.traits import PLAIN, Control, Traits
from opdock.late import record
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.graph.nodes.operation import Operation

_FAMILIES: Final = "opdock.ops"
MOST_RANK: Final = 254  # TensorFlow's
_REGISTRY: dict[str, OpSpec] = {}
_F = TypeVar("_F", bound=Callable[..., Any])

GradientFn = Callable[..., Any]
RowsFn = Callable[["Operation", Sequence[Any], Sequence[bool]], "Sequence[Any] | None"]


class ShapeSig:
    """What a shape function sees of a node.

    Attributes:
        spec: the op's definition.
        name: the node's name.
        shapes: static shapes of all inputs, lists flattened.
        dtypes: element types of all inputs.
        attrs: the attributes as native values, defaults filled in.
        n_outputs: the number of outputs, lists flattened.
    """

    __slots__ = ("_consts", "attrs", "dtypes", "n_outputs", "name", "shapes", "spec")

    def __init__(
        self, spec: OpSpec, name: str, input_shapes: list[Shape], input_dtypes: list[DType],
        attrs: dict[str, Any], n_outputs: int, consts: Callable[[int], Any] | None = None,
    ) -> None:  # fmt: skip
        self.spec = spec
        self.name = name
        self.shapes = input_shapes
        self.dtypes = input_dtypes
        self.attrs = attrs
        self.n_outputs = n_outputs
        self._consts = consts

    @property
    def op(self) -> str:
        """The op type."""
        return self.spec.name

    def known(self, index: int) -> np.ndarray[Any, Any] | PartialShape | Handle | None:
        """What is known of the value of input `index`: all of it, some entries, or nothing."""
        return None if self._consts is None else self._consts(index)

    def _without(self, inputs: Container[int]) -> ShapeSig:
        """The same, with nothing known of the values of these inputs."""
        return ShapeSig(
            self.spec, self.name, self.shapes, self.dtypes, self.attrs, self.n_outputs,
            lambda index: None if index in inputs else self.known(index),
        )  # fmt: skip

    def const(self, index: int) -> np.ndarray[Any, Any] | None:
        """The value of input `index` if it is known without running anything."""
        value = self.known(index)
        return value if isinstance(value, np.ndarray) else getattr(value, "array", None)

    def handle(self, index: int) -> Handle | None:
        """What is known of the variable, or of a list's elements, whose handle input `index` is."""
        value = self.known(index)
        return value if isinstance(value, Handle) else None

    def const_shape(self, index: int) -> Shape:
        """Input `index` read as a shape vector: its entries where known, None elsewhere.

        Entries of -1 are unknown dimensions.

        Raises:
            ValueError: the input is no vector, or too long a one, or an entry is below -1.
        """
        length = shapes.with_rank(self.shapes[index], 1)
        if length is not None and (length[0] or 0) > MOST_RANK:
            raise ValueError(f"Shape must be at most rank {MOST_RANK} but is rank {length[0]}")
        value = self.known(index)
        if isinstance(value, PartialShape):
            return value.shape
        if value is not None:
            sizes = np.asarray(value).reshape(-1).tolist()
            if sizes and min(sizes) < -1:
                wrong = next(size for size in sizes if size < -1)
                raise ValueError(f"Invalid value in tensor used for shape: {wrong}")
            return tuple(None if size < 0 else size for size in sizes)
        if length is not None and length[0] is not None:
            return (None,) * length[0]
        return None


@record(frozen=True, slots=True)
class Handle:
    """What a handle tells: type and static shape of a variable, or of the elements of a list."""

    dtype: DType
    shape: Shape


class PartialShape:
    """A shape vector of which only some entries are known."""

    __slots__ = ("shape",)

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


class OpSpec:
    """One op type. Calling it adds a node to the graph; its decorators attach the op's parts."""

    def __init__(
        self,
        name: str,
        signature: str,
        attrs: str,
        *,
        stateful: bool,
        commutative: bool,
        aggregate: bool,
        allows_uninitialized_input: bool,
        expr: str | None,
        probe: bool = False,
        home: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.__name__ = name
        self.home = home
        self._is_core = home.get("__name__", "").startswith("opdock.")
        self._signature = signature
        self._attrs = attrs
        self.stateful = stateful
        self.commutative = commutative
        self.aggregate = aggregate
        self.allows_uninitialized_input = allows_uninitialized_input
        self.expr = expr
        self.probe = probe
        self.shape_fn: Callable[[ShapeSig], Any] | None = None
        self.gradient_fn: GradientFn | None = None
        self.is_differentiable = True
        self.decomposition_fn: Callable[..., Any] | None = None
        self.known_fn: Callable[[ShapeSig], Sequence[Any]] | None = None
        self.elements_fn: Callable[[ShapeSig], Handle | int | None] | None = None
        self.callee_fn: Callable[[dict[str, Any]], Any] | None = None
        self.rows_fn: RowsFn | None = None
        self.traits = PLAIN
        self._def: opdef.OpDef | None = None
        self._builder: Any = None

    # ------------------------------------------------------------ definition
    @property
    def definition(self) -> opdef.OpDef:
        """The parsed definition (parsed on first use: importing 500 ops must stay cheap)."""
        if self._def is None:
            self._def = opdef.parse(self.name, self._signature, self._attrs)
        return self._def

    @property
    def text(self) -> tuple[str, str]:
        """The signature and the attributes, as they were written."""
        return self._signature, self._attrs

    @functools.cached_property
    def takes_refs(self) -> bool:
        """Whether an argument is declared as a reference to a variable."""
        return any(a.is_ref for a in self.definition.inputs)

    @functools.cached_property
    def fixed_refs(self) -> tuple[frozenset[int], frozenset[int]] | None:
        """The inputs that are declared as references, and those of them that the op changes.

        None where nodes differ in it: an argument is a list, or a function tells.
        """
        inputs = self.definition.inputs
        if self.traits.captures or any(a.is_list for a in inputs):
            return None
        refs = {i: a.name for i, a in enumerate(inputs) if a.is_ref}
        changed = (i for i, name in refs.items() if name not in self.traits.reads)
        return frozenset(refs), frozenset(changed)

    @functools.cached_property
    def is_stateful(self) -> bool:
        """TF's flag, unless the op's traits say that it means nothing here."""
        return self.stateful and self.traits.effect is not False

    @functools.cached_property
    def has_effect(self) -> bool:
        """Whether a step without the op is another step, beyond the state that it writes."""
        traits = self.traits
        if traits.effect is not None:
            return traits.effect
        if not self.stateful or traits.random or traits.holds or traits.own:
            return False
        state = {a.name for a in self.definition.inputs if a.is_ref or a.dtype is resource}
        return not state or not state.issubset(traits.reads)

    @functools.cached_property
    def touches(self) -> bool:
        """Whether a node that takes no handle may take state or have an effect."""
        control = self.traits.control is not Control.NONE
        return control or self.has_effect or self.takes_refs or not self.traits.drop

    def attr_type(self, name: str) -> str | None:
        """The declared type of an attribute, or None for an undeclared one such as `_class`."""
        found = self.definition.attrs.get(name)
        return None if found is None else found.type

    def to_proto(self) -> Any:
        """The definition as TF's OpDef message."""
        from opdock.graph.serial.attr_proto import to_op_def

        return to_op_def(self)

    # ------------------------------------------------------------ parts
    def shape(self, fn: _F) -> _F:
        """Attaches the shape function `fn(sig) -> Shape | list[Shape]`."""
        self.shape_fn = fn
        return fn

    def gradient(self, fn: _F) -> _F:
        """Attaches the gradient `fn(op, *output_grads) -> input gradients`."""
        self.gradient_fn = fn
        return fn

    def not_differentiable(self) -> OpSpec:
        """Declares that no gradient flows through the op."""
        self.is_differentiable = False
        return self

    def known(self, fn: _F) -> _F:
        """Attaches `fn(sig) -> values`: what static shapes and known inputs say of the outputs.

        A value is an array, a `PartialShape` for a vector of which some entries are known, or None.
        """
        self.known_fn = fn
        return fn

    def elements(self, fn: _F) -> _F:
        """Attaches `fn(sig) -> handle`: what is known of the elements of the list that is output 0.

        Instead of a `Handle` it may be the index of an input, a list whose elements are like these,
        or None.
        """
        self.elements_fn = fn
        return fn

    def declare(self, traits: Traits) -> OpSpec:
        """Declares what the op means to compiler and runtime; ValueError for what it cannot."""
        if not self._is_core:
            check_declared(self.definition, traits, self.callee_fn is not None)
        self.traits = traits
        return self

    def decomposition(self, fn: _F) -> _F:
        """Attaches `fn(sig, *inputs) -> outputs`, the op in terms of simpler ops."""
        self.decomposition_fn = fn
        return fn

    def callee(self, fn: _F) -> _F:
        """Attaches `fn(attrs) -> FuncGraph`: the function that a node of type CALL stands for."""
        self.callee_fn = fn
        return fn

    def rows(self, fn: _F) -> _F:
        """Attaches `fn(op, inputs, rowed) -> outputs`: the node for many elements at once.

        `inputs` are the node's, of which those that `rowed` names have a row for each element. All
        outputs must have; None says that this node cannot. Elementwise ops need no such function.
        """
        self.rows_fn = fn
        return fn

    def infer(self, sig: ShapeSig) -> list[Shape]:
        """Static output shapes; ValueError with TF's wording, the node and the input shapes."""
        if self.shape_fn is None:
            return [None] * sig.n_outputs
        try:
            result = self.shape_fn(sig)
        except (ValueError, errors.InvalidArgumentError) as e:
            raise ValueError(f"{e} {_describe(sig)}") from None
        if result is None:
            return [None] * sig.n_outputs
        if sig.n_outputs == 1 and not isinstance(result, list):
            result = [result]
        if not isinstance(result, (list, tuple)):
            raise TypeError(_no_shape(sig, result, f"a list of {sig.n_outputs} shapes"))
        if len(result) != sig.n_outputs:
            raise ValueError(f"{len(result)} shapes for {sig.n_outputs} outputs {_describe(sig)}")
        if self._is_core:  # The suite looks at what these give, so that building need not.
            return list(result)
        return [s if is_plain(s) else _static(sig, s) for s in result]

    # ------------------------------------------------------------ building nodes
    def __call__(self, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
        """Adds a node to the current graph.

        Args:
            *inputs: one argument per input: tensors or values that convert to them; a list for
                list arguments.
            name: the node's name; the op type by default.
            **attrs: attributes that the inputs do not determine.

        Returns:
            An Operation (no output; None where operations run as they are made), a Tensor, a
            list of tensors (one list output), or a namedtuple (several outputs).

        Raises:
            TypeError: an input or attribute has the wrong type.
            ValueError: an attribute value or a shape is not allowed.
        """
        if self._builder is None:
            # A builder makes operations, which know of their specs.
            from opdock.graph.nodes.builder import Builder

            self._builder = Builder(self)
        if not of_any_function:
            return self._builder.build(inputs, name, attrs)
        named = attrs if name is None else {"name": name, **attrs}
        return or_others(self, lambda: self._builder.build(inputs, name, attrs), inputs, named)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self._signature}>"


def is_plain(shape: Any) -> bool:
    """Whether a shape is in the one form that everybody else relies on."""
    if shape is None:
        return True
    if type(shape) is not tuple:
        return False
    for length in shape:
        if length is not None and (type(length) is not int or length < 0):
            return False
    return True


def _static(sig: ShapeSig, given: Any) -> Shape:
    """What a shape function gave for an output, if it is not in that form."""
    wanted = "a tuple of lengths, None where one is not known"
    if isinstance(given, (str, bytes, int)):
        raise TypeError(_no_shape(sig, given, wanted))
    try:
        return shapes.as_shape(given)
    except (TypeError, ValueError):
        raise TypeError(_no_shape(sig, given, wanted)) from None


def _no_shape(sig: ShapeSig, given: Any, wanted: str) -> str:
    code = getattr(sig.spec.shape_fn, "__code__", None)
    at = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"The shape function of {sig.op}{at} gave {given!r}, expected {wanted} {_describe(sig)}"


def _describe(sig: ShapeSig) -> str:
    text = f"for '{sig.name}' (op: '{sig.op}') with input shapes: "
    text += ", ".join(shapes.text(s) for s in sig.shapes)
    known = []
    for i in range(len(sig.shapes)):
        value = sig.const(i)
        if value is not None and value.ndim <= 1 and 0 < value.size <= 16:
            body = " ".join(str(v) for v in value.reshape(-1))
            known.append(f"input[{i}] = <{body}>")
    if known:
        text += " and with computed input tensors: " + ", ".join(known)
    return text + "."


def define_op(
    name: str, signature: str, attrs: str = "", *, stateful: bool = False,
    commutative: bool = False, aggregate: bool = False, allows_uninitialized_input: bool = False,
    expr: str | None = None, probe: bool = False,
) -> OpSpec:  # fmt: skip
    """Registers an op type under TF's name, argument names, attributes and defaults.

    Args:
        name: the op type, e.g. "MatMul".
        signature: "a: T, b: T -> product: T"; see `opdock.graph.nodes.opdef`.
        attrs: "T: {float, double}, transpose_a: bool = false".
        stateful: whether equal nodes may give unequal results, so none is folded or merged.
        commutative: whether the order of the inputs does not matter.
        aggregate: whether the op is associative over its inputs.
        allows_uninitialized_input: whether a variable that it refers to may have no value yet.
        expr: the scalar expression of an elementwise op over its argument names.
        probe: whether the op is for tests of graphs alone: `all_ops` passes over it.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the name is taken, be it by an op of core's whose family is not imported yet;
            or the text is malformed, which an op of core's tells when it is first used.
    """
    flags = {
        "stateful": stateful, "commutative": commutative, "aggregate": aggregate, "probe": probe,
        "allows_uninitialized_input": allows_uninitialized_input,
    }  # fmt: skip
    home = _running()
    is_core = home.get("__name__", "").startswith("opdock.")
    if not is_core:
        opdef.check_arguments(name, signature, attrs, expr, **flags)
    if name in _homes() and not home.get("__name__", "").startswith(f"{_FAMILIES}."):
        raise ValueError(f"Op '{name}' is an op of opdock's; give yours a prefix: 'acme>{name}'.")
    known = _REGISTRY.get(name)
    if known is not None and not _abandoned(known):
        raise ValueError(f"Op '{name}' is registered already.")
    spec = OpSpec(name, signature, attrs, expr=expr, home=home, **flags)
    if not is_core:
        _ = spec.definition
    _REGISTRY[name] = spec
    return spec


def _running() -> dict[str, Any]:
    """The globals of the module that is being run, whichever helper is called from it."""
    frame = sys._getframe(2)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals


def _abandoned(spec: OpSpec) -> bool:
    """Whether the import that defined an op did not come to its end, and is taken up anew."""
    module = sys.modules.get(spec.home.get("__name__", ""))
    return module is None or vars(module) is not spec.home


def get(name: str) -> OpSpec:
    """The definition of op type `name`, for which installed plugins are loaded if core has none.

    Raises:
        NotFoundError: there is none.
    """
    spec = find(name) or _brought(name)
    if spec is None:
        told = f"Op type not registered '{name}'. Make sure the op is defined by opdock or by an "
        told += "installed plugin (hook opdock_ops); `opdock doctor` lists the plugins."
        raise errors.NotFoundError(None, None, told)
    return spec


def find(name: str) -> OpSpec | None:
    """The definition of op type `name`, or None; imports the family of one that is core's."""
    spec = _REGISTRY.get(name)
    if spec is None and (family := _homes().get(name)):
        importlib.import_module(f"{_FAMILIES}.{family}")
        spec = _REGISTRY.get(name)
    return spec


def _brought(name: str) -> OpSpec | None:
    """The definition by a plugin that was not loaded yet: a graph may be read before a session."""
    # By name: plugins stand above this layer.
    importlib.import_module("opdock.plugins.manager").get_manager().load()
    return _REGISTRY.get(name)


def known_ops() -> list[OpSpec]:
    """The ops that have been defined so far: those of plugins and of families in use."""
    return list(_REGISTRY.values())


def all_ops(probes: bool = False) -> Iterator[OpSpec]:
    """Every registered op by name; those for tests of graphs only with `probes`."""
    load_all()
    return iter([_REGISTRY[k] for k in sorted(_REGISTRY) if probes or not _REGISTRY[k].probe])


def load_all() -> None:
    """Imports every op family."""
    # By name: the families stand above this layer.
    families = importlib.import_module(_FAMILIES)
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")


@functools.cache
def _homes() -> Mapping[str, str]:
    """Op type -> the family that defines it."""
    return {op: family for family, ops in OPS.items() for op in ops.split()}
