"""`tf.contrib.framework`: variables made, found, placed and given values from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import framework


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _names(variables: list[tf.Variable]) -> list[str]:
    return [v.op.name for v in variables]


def test_variables_are_found_by_scope_suffix_and_name() -> None:
    with tf.variable_scope("a") as scope:
        framework.model_variable("weights", [2])
        framework.variable("other_weights", [2], trainable=False)
    with tf.variable_scope("b"):
        framework.model_variable("weights", [2])
    framework.local_variable(0.0, name="count")
    framework.global_variable(1.0, name="rate")
    assert _names(framework.get_variables(scope)) == ["a/weights", "a/other_weights"]
    assert _names(framework.get_variables_by_suffix("weights")) == [
        "a/weights", "a/other_weights", "b/weights",
    ]  # fmt: skip
    assert _names(framework.get_variables_by_name("weights")) == ["a/weights", "b/weights"]
    assert _names(framework.get_model_variables()) == ["a/weights", "b/weights"]
    assert _names(framework.get_local_variables()) == ["count"]
    assert _names(framework.get_trainable_variables("a")) == ["a/weights"]
    restored = framework.get_variables_to_restore(include=["a", "b"], exclude=["a/other"])
    assert _names(restored) == ["a/weights", "b/weights"]
    with pytest.raises(TypeError, match="exclude is provided but is not a list"):
        framework.get_variables_to_restore(exclude="a")
    assert framework.get_unique_variable("rate").op.name == "rate"
    with pytest.raises(ValueError, match="Couldn't find variable rates"):
        framework.get_unique_variable("rates")
    with pytest.raises(ValueError, match="rat does not uniquely identify"):
        framework.get_unique_variable("rat")
    kept = framework.filter_variables(tf.global_variables(), ["weights"], ["^b/"])
    assert _names(kept) == ["a/weights", "a/other_weights"]


def test_model_variables_are_collected_once_and_take_defaults_from_scopes() -> None:
    made = tf.get_variable("v", [1])
    framework.add_model_variable(made)
    framework.add_model_variable(made)
    assert framework.get_model_variables() == [made]
    chooser = framework.VariableDeviceChooser(2, replica=3)
    with framework.arg_scope([framework.variable], device=chooser, collections=["mine"]):
        first, second = framework.variable("one", [1]), framework.variable("two", [1])
    assert [first.device, second.device] == [
        f"/job:ps/replica:3/task:{task}/device:CPU:0" for task in (0, 1)
    ]
    assert tf.get_collection("mine") == [first, second]
    assert first not in tf.global_variables()


def test_values_are_fed_and_not_a_part_of_the_graph() -> None:
    with tf.variable_scope("net"):
        tf.get_variable("w", [2, 2])
        tf.get_variable("w_other", [1])
    values = {"net/w": np.arange(4.0), "net/w_other": np.array([7.0])}
    assign = framework.assign_from_values_fn(values)
    with tf.Session() as sess:
        assign(sess)
        assert sess.run("net/w:0").tolist() == [[0.0, 1.0], [2.0, 3.0]]
        assert sess.run("net/w_other:0").tolist() == [7.0]
    with pytest.raises(ValueError, match="Variable absent wasn't found"):
        framework.assign_from_values({"absent": np.zeros(1)})


def test_checkpoints_are_taken_whole_in_parts_and_without_what_they_lack(tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("table", initializer=np.arange(6.0, dtype=np.float32).reshape(3, 2))
        tf.get_variable("gone", initializer=1.0)
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, path)
    parts = tf.get_variable(
        "table",
        [3, 2],
        partitioner=tf.fixed_size_partitioner(2),
        initializer=tf.zeros_initializer(),
    )
    new = tf.get_variable("new", initializer=5.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(*framework.assign_from_checkpoint(path, list(parts)))
        assert [v.tolist() for v in sess.run(list(parts))] == [[[0, 1], [2, 3]], [[4, 5]]]
        with pytest.raises(ValueError, match=r"Checkpoint is missing variable \[new\]"):
            framework.assign_from_checkpoint(path, [new])
        sess.run(*framework.assign_from_checkpoint(path, [new], ignore_missing_vars=True))
        assert sess.run(new) == 5.0
        with pytest.raises(ValueError, match="Total size of new array must be unchanged"):
            framework.assign_from_checkpoint(path, {"table": new})
        restore = framework.assign_from_checkpoint_fn(path, {"gone": new})
        assert restore is not None
        restore(sess)
        assert sess.run(new) == 1.0
    assert framework.assign_from_checkpoint_fn(path, [new], ignore_missing_vars=True) is None


def test_python_functions_take_and_give_structures() -> None:
    def area(sides: dict[str, np.ndarray], scale: np.ndarray) -> dict[str, np.ndarray]:
        return {"area": sides["a"] * sides["b"] * scale}

    found = framework.py_func(
        area, [{"a": tf.constant(2.0), "b": tf.constant(3.0)}], {"scale": tf.constant(10.0)},
        {"area": tf.float32}, {"area": []},
    )  # fmt: skip
    assert found["area"].shape.as_list() == []
    with tf.Session() as sess:
        assert sess.run(found) == {"area": 60.0}
    with pytest.raises(TypeError, match="args must be list"):
        framework.py_func(area, 1)


def test_a_part_of_a_graph_is_one_op() -> None:
    graph_def = tf.GraphDef()
    for name, inputs in (("a", []), ("b", ["a"]), ("c", ["b", "c"]), ("d", ["c"]), ("e", ["d"])):
        graph_def.node.add(name=name, op="Some", input=inputs)
    fused = framework.fuse_op(graph_def, ["a"], ["d"], [1], False, "fused", "Whole")
    assert [(n.name, n.op, list(n.input)) for n in fused.node] == [
        ("a", "Some", []), ("fused", "Whole", ["a"]), ("d", "Some", ["fused"]),
        ("e", "Some", ["d"]),
    ]  # fmt: skip
    graph_def.node[2].input.append("z")
    graph_def.node.add(name="z", op="Some")
    graph_def.node[0].input.append("z")
    with pytest.raises(TypeError, match="uses input z not in input_nodes"):
        framework.fuse_op(graph_def, ["a"], ["d"], [1], False, "fused", "Whole")


def test_placeholders_and_the_global_step() -> None:
    fed = [tf.placeholder(tf.float32) for _ in range(3)]
    tf.constant(1.0)
    assert framework.get_placeholders(tf.get_default_graph()) == fed
    assert framework.assert_or_get_global_step() is None
    step = framework.create_global_step()
    assert framework.assert_or_get_global_step() is step
    with pytest.raises(TypeError):
        framework.assert_or_get_global_step(global_step_tensor=tf.constant(1.0))
