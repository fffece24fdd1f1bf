"""Nodes by the name of their op, and what is said of lists of wrong types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import opdock as tf

library = tf.python.framework.test_ops._op_def_lib


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_a_node_by_the_name_of_its_op() -> None:
    total = library.apply_op("AddN", inputs=[1.0, 2.0], name="total")
    assert total.name == "total:0"
    assert library.apply_op("IntAttr", foo=3).op.get_attr("foo") == 3
    with pytest.raises(RuntimeError, match="Unrecognized Op name nothing"):
        library.apply_op("nothing")


def test_definitions_are_checked() -> None:
    op = tf.MetaGraphDef().meta_info_def.stripped_op_list.op.add(name="Bad")
    op.input_arg.add(name="a", type_attr="T")
    with pytest.raises(TypeError, match="Inconsistent OpDef for 'Bad', missing attr 'T'"):
        library.add_op(op)
    op.attr.add(name="T", type="int")
    with pytest.raises(TypeError, match="used as a type_attr but has type int"):
        library.add_op(op)
    op.input_arg[0].type = tf.int32.as_datatype_enum
    with pytest.raises(TypeError, match="must have one type field not 2"):
        library.add_op(op)


@pytest.mark.parametrize(("op", "inputs", "text"), [
    ("NIntsIn", {"a": ["foo", "bar"]}, r"\[string, string\] that do not match expected type int32"),
    ("NPolymorphicIn", {"a": [1, "bar"]}, r"have types \[int32, string\] that don't all match"),
    ("NPolymorphicIn", {"a": [1, None]}, r"\[int32, <NOT CONVERTIBLE TO TENSOR>\] that don't all"),
    ("NInPolymorphicTwice", {"a": [1], "b": ["x"]}, "type int32 inferred from earlier arguments"),
    ("InPolymorphicTwice", {"a": [], "b": [3]}, "how to infer type variable from empty input list"),
    ("TypeList", {"a": [1, None]}, r"\[int32, <NOT CONVERTIBLE TO TENSOR>\] that are invalid"),
    ("TypeListTwice", {"a": ["x", True], "b": ["y", 6]}, "list string, bool of argument 'a'"),
    ("TypeListRestrict", {"a": [True, 12]}, "DataType int32 not in list of allowed values: string"),
])  # fmt: skip
def test_lists_of_wrong_types(op: str, inputs: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        library.apply_op(op, **inputs)


def test_errors_say_what_tensorflow_says_and_note_the_op() -> None:
    not_allowed = "Value passed to parameter 'a' has DataType int32 not in list of allowed values:"
    for op, given, text in (
        ("Attr", {"a": "bad"}, "Expected int for argument 'a' not 'bad'."),
        ("Attr", {"a": None}, "Expected int for argument 'a' not None."),
        ("AttrBool", {"a": 0}, "Expected bool for argument 'a' not 0."),
        ("PolymorphicOut", {"T": [3.5]}, "Expected DataType for argument 'T' not [3.5]."),
        ("FuncAttr", {"f": 3}, "Don't know how to convert 3 to a func for argument f"),
        ("OutTypeList", {"T": tf.int32}, "Expected list for attr T"),
        ("Restrict", {"a": 3}, f"{not_allowed} string, bool"),
    ):  # fmt: skip
        with pytest.raises(TypeError) as caught:
            library.apply_op(op, **given)
        assert str(caught.value) == text
        assert caught.value.__notes__ == [f"The argument is one of op '{op}'."]
    with pytest.raises(TypeError, match="'RefIn' Op requires that input 'a' be a mutable tensor"):
        library.apply_op("RefIn", a=2)


def test_arguments_that_there_are_not() -> None:
    for given, text in (
        ({}, "No argument for input a"),
        ({"a": 6, "more": 1, "most": 2}, "got unexpected keyword arguments: more, most"),
    ):
        with pytest.raises(TypeError, match=text):
            library.apply_op("Simple", **given)
    with pytest.raises(TypeError, match="No argument for attr T"):
        library.apply_op("PolymorphicOut")
    with pytest.raises(TypeError, match="Should not specify value for inferred attr 'T'"):
        library.apply_op("Polymorphic", a="s", T=tf.string)


def test_names_that_python_keeps_and_lists_that_are_empty() -> None:
    assert library.apply_op("ReservedInput", input_=7).type == "ReservedInput"
    assert library.apply_op("ReservedAttr", range_=7).get_attr("range") == 7
    assert library.apply_op("OutTypeList", T=[]) == []
