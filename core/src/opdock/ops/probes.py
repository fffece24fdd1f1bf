"""Ops that compute nothing: what tests of graph building, import and op definitions are made of.

TensorFlow registers the same ones, so graphs that its tests write can be read here. They have no
kernels, take no part in conformance, and nothing but their signature is known of them.
"""

from __future__ import annotations

from typing import Final

from opdock.graph.nodes.registry import ShapeSig, define_op
from opdock.shapes import Shape

__all__: list[str] = []

# Op type -> its signature, or its signature and attributes.
_PROBES: Final[dict[str, str | tuple[str, str]]] = {
    # plain arguments
    "None": "->",
    "A": "-> out: float",
    "B": "-> out: float",
    "Foo1": "a: float, b: int32, c: int32 -> d: float, e: int32",
    "Foo2": "a: float, b: string, c: string -> d: float, e: int32",
    "Foo3": "a: float, b: string, c: float -> d: float, e: int32",
    "IntOutput": "-> a: int32",
    "Int64Output": "-> out: int64",
    "FloatOutput": "-> a: float",
    "TwoIntOutputs": "-> a: int32, b: int32",
    "TwoFloatOutputs": "-> a: float, b: float",
    "FiveFloatOutputs": "-> a: float, b: float, c: float, d: float, e: float",
    "IntOutputFloatOutput": "-> a: int32, b: float",
    "FloatOutputStringOutput": "-> a: float, b: string",
    "IntInput": "a: int32 ->",
    "FloatInput": "a: float ->",
    "TwoIntInputs": "a: int32, b: int32 ->",
    "TwoFloatInputs": "a: float, b: float ->",
    "IntInputFloatInput": "a: int32, b: float ->",
    "IntInputIntOutput": "a: int32 -> b: int32",
    "TwoFloatInputsFloatOutput": "a: float, b: float -> c: float",
    "TwoFloatInputsIntOutput": "a: float, b: float -> c: int32",
    "Simple": "a: int32 -> out: float",
    "ReservedInput": "input: int32 ->",
    "TestStringOutput": "input: float -> output1: float, output2: string",
    # references
    "RefOutput": "-> a: Ref(int32)",
    "RefOutputFloatOutput": "-> a: Ref(float), b: float",
    "RefInputIntInput": "a: Ref(int32), b: int32 ->",
    "RefInputFloatInput": "a: Ref(float), b: float ->",
    "RefInputFloatInputIntOutput": "a: Ref(float), b: float -> c: int32",
    "RefIn": ("a: Ref(T) ->", "T: type"),
    "RefOut": ("-> a: Ref(T)", "T: type"),
    "TwoRefsIn": ("a: Ref(T), b: Ref(T) ->", "T: type"),
    # types that vary
    "CopyOp": ("a: T -> b: T", "T: type"),
    "Unary": ("a: T -> b: T", "T: type"),
    "Binary": ("a: T, b: T -> out: T", "T: type"),
    "OutT": ("-> a: T", "T: type"),
    "Polymorphic": ("a: T -> out: T", "T: type"),
    "PolymorphicOut": ("-> out: T", "T: type"),
    "PolymorphicDefaultOut": ("-> out: T", "T: type = DT_STRING"),
    "Restrict": ("a: T -> out: T", "T: {string, bool}"),
    "TestAttr": ("-> out: T", "T: {float, double}"),
    # lists
    "ListInput": ("a: N * T ->", "N: int >= 1, T: type"),
    "ListOutput": ("-> a: T", "T: list(type) >= 1"),
    "TypeList": ("a: T ->", "T: list(type) >= 0"),
    "TypeListTwice": ("a: T, b: T ->", "T: list(type) >= 0"),
    "TypeListRestrict": ("a: T ->", "T: list({string, bool})"),
    "OutTypeList": ("-> out: T", "T: list(type) >= 0"),
    "OutTypeListRestrict": ("-> out: t", "t: list({string, bool})"),
    "NIntsIn": ("a: N * int32 ->", "N: int >= 2"),
    "NPolymorphicIn": ("a: N * T ->", "T: type, N: int >= 2"),
    "NPolymorphicRestrictIn": ("a: N * T ->", "T: {string, bool}, N: int >= 2"),
    "NInTwice": ("a: N * int32, b: N * string ->", "N: int >= 0"),
    "NInPolymorphicTwice": ("a: N * T, b: N * T ->", "T: type, N: int >= 0"),
    "NInTwoTypeVariables": ("a: N * S, b: N * T ->", "S: type, T: type, N: int >= 0"),
    "InPolymorphicTwice": ("a: N * T, b: M * T ->", "T: type, N: int >= 0, M: int >= 0"),
    "NIntsOut": ("-> a: N * int32", "N: int >= 2"),
    "NIntsOutDefault": ("-> a: N * int32", "N: int >= 2 = 3"),
    "NPolymorphicOut": ("-> a: N * T", "T: type, N: int >= 2"),
    "NPolymorphicOutDefault": ("-> a: N * T", "T: type = DT_BOOL, N: int >= 2 = 2"),
    "NPolymorphicRestrictOut": ("-> a: N * T", "T: {string, bool}, N: int >= 2"),
    "SimpleStruct": ("-> a: n_a * int32", "n_a: int >= 0"),
    "MixedStruct": ("-> a: n_a * int32, b: float", "n_a: int >= 0"),
    "ComplexStruct": (
        "-> a: n_a * int32, b: n_b * int64, c: t_c",
        "n_a: int >= 0, n_b: int >= 0, t_c: list(type) >= 0",
    ),
    # attributes
    "OpWithDefaultAttr": ("-> a: int32", "default_float: float = 123.0"),
    "OpWithFutureDefaultAttr": "->",
    "IntAttr": ("-> out: int64", "foo: int = 1"),
    "StringListAttr": ("->", "a: list(string), b: string"),
    "DefaultAttrs": (
        "->",
        (
            "string_val: string = 'abc', string_list_val: list(string) = ['abc', ''], "
            "int_val: int = 123, int_list_val: list(int) = [1, 2, 3], "
            "float_val: float = 10.0, float_list_val: list(float) = [10.0], "
            "bool_val: bool = true, bool_list_val: list(bool) = [true, false], "
            "type_val: type = DT_INT32, type_list_val: list(type) = [DT_INT32, DT_FLOAT], "
            "shape_val: shape = [2, 1], shape_list_val: list(shape) = [[], [1]], "
            "tensor_val: tensor = int32 1, tensor_list_val: list(tensor) = [int32 1]"
        ),
    ),
    "FuncAttr": ("->", "f: func"),
    "FuncListAttr": ("->", "f: list(func)"),
    "Attr": ("->", "a: int"),
    "AttrFloat": ("->", "a: float"),
    "AttrBool": ("->", "a: bool"),
    "AttrBoolList": ("->", "a: list(bool)"),
    "AttrMin": ("->", "a: int >= 5"),
    "AttrListMin": ("->", "a: list(int) >= 2"),
    "AttrEnum": ("->", "a: {'apples', 'oranges'}"),
    "AttrEnumList": ("->", "a: list({'apples', 'oranges'})"),
    "AttrShape": ("->", "a: shape"),
    "AttrShapeList": ("->", "a: list(shape)"),
    "AttrPartialShape": ("->", "a: shape"),
    "AttrPartialShapeList": ("->", "a: list(shape)"),
    "AttrDefault": ("->", "a: string = 'banana'"),
    "AttrListDefault": ("->", "a: list(int) = [5, 15]"),
    "AttrEmptyListDefault": ("->", "a: list(float) = []"),
    "ReservedAttr": ("->", "range: int"),
    "AttrTypeDefault": ("a: T ->", "T: type = DT_INT32"),
    "AttrListTypeDefault": ("a: N * T, b: N * T ->", "T: type = DT_INT32, N: int"),
}


def _unknown(sig: ShapeSig) -> list[Shape]:
    return [None] * sig.n_outputs


for _name, _definition in _PROBES.items():
    _signature, _attrs = (_definition, "") if isinstance(_definition, str) else _definition
    define_op(_name, _signature, _attrs, probe=True).shape(_unknown)
