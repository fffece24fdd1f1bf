"""Modules: names, scopes, and what is in their attributes."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


class DenseLayer(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(1.0, name="w")
            self.b = tf.Variable(0.0, name="b", trainable=False)

    @tf.Module.with_name_scope
    def __call__(self, x):
        return tf.multiply(x, self.w, name="y")


class Stack(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [DenseLayer(), DenseLayer("second")]
        self.again = self.layers[0]
        self.table = {"b": tf.Variable(2.0), "a": tf.Variable(3.0)}


def test_names_and_scopes():
    layer = DenseLayer()
    assert layer.name == "dense_layer" and layer.w.op.name == "dense_layer/w"
    assert layer(2.0).op.name == "dense_layer/y"
    assert DenseLayer().w.op.name == "dense_layer_1/w"
    with pytest.raises(ValueError, match="is not a valid module name"):
        DenseLayer("1st")


def test_what_a_module_holds():
    stack = Stack()
    first, second = stack.layers
    assert stack.submodules == (first, second)
    assert stack.variables == (
        stack.table["a"], stack.table["b"], first.b, first.w, second.b, second.w,
    )  # fmt: skip
    assert stack.trainable_variables == (
        stack.table["a"], stack.table["b"], first.w, second.w,
    )  # fmt: skip
    paths = {path: leaf for path, leaf in stack._flatten(with_path=True) if leaf is first.w}
    assert set(paths) == {("layers", 0, "w"), ("again", "w")}
