"""`tf.compat.v2.Variable`: the class of all variables, which makes resource variables."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.graph.variables.resource_variable import ResourceVariable, VariableV2


def test_every_variable_is_one() -> None:
    assert tf.compat.v2.Variable is VariableV2
    assert isinstance(tf.Variable(1.0, use_resource=False), VariableV2)
    assert isinstance(tf.Variable(1.0, use_resource=True), VariableV2)
    assert issubclass(tf.Variable, VariableV2)
    assert not isinstance(tf.constant(1.0), VariableV2)

    class Mine(VariableV2):
        pass

    assert not isinstance(tf.Variable(1.0), Mine)
    assert not issubclass(ResourceVariable, Mine)


def test_it_makes_resource_variables_with_its_own_order_of_arguments() -> None:
    made = VariableV2(1.0, False, True, None, "mine")
    assert isinstance(made, ResourceVariable)
    assert made.op.name == "mine"
    assert made not in tf.trainable_variables()
    with pytest.raises(TypeError, match="takes 12 arguments, got 13"):
        VariableV2(*range(13))


def test_variables_and_tensors_have_references() -> None:
    variable = tf.Variable(1.0)
    assert variable.ref() == variable.experimental_ref()
    assert variable.ref().deref() is variable
