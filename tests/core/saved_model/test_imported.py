"""`tf.saved_model.load_v2`: models as objects, whose signatures are functions of tensors."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.ops.composed.tracing import UnliftableError
from opdock.saved_model.imported import load_v2


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def saved(folder: Path, use_resource: bool = True, rows: bool = True) -> str:
    """A model with a variable, a local one, and one that nobody needs; it may give sparse rows."""
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        tf.Variable([-1.0], name="distractor", use_resource=False)
        v = tf.Variable(3.0, name="v", use_resource=use_resource)
        local = tf.Variable(
            2.0, collections=["local_variables"], trainable=False, use_resource=True, name="l"
        )
        y = tf.identity(x * v * local, name="y")
        session.run(tf.global_variables_initializer())
        session.run(v.assign(5.0))
        outputs = {"y": y, "rows": tf.sparse.from_dense(x)} if rows else {"y": y}
        tf.saved_model.simple_save(
            session, path, {"x": x}, outputs, legacy_init_op=local.initializer
        )
    return path


def begin(session: tf.Session) -> None:
    session.run(tf.global_variables_initializer())
    session.run(tf.tables_initializer())


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        begin(session)
        return session.run(fetches)


@pytest.mark.parametrize("use_resource", [False, True])
def test_signatures_are_functions_over_the_variables_of_the_model(tmp_path, use_resource) -> None:
    model = load_v2(saved(tmp_path, use_resource))
    assert list(model.signatures) == ["serving_default"]
    function = model.signatures["serving_default"]
    once, again = function([1.0, 0.0]), function(x=tf.constant([0.0, 7.0, 1.0]))
    found = run([once["y"], again["y"], again["rows"].values])
    assert [f.tolist() for f in found] == [[10, 0], [0, 70, 10], [7, 1]]


def test_a_signature_takes_tensors_of_other_ranks_than_it_was_saved_for(tmp_path) -> None:
    function = load_v2(saved(tmp_path)).signatures["serving_default"]
    single, square = function(x=2.0)["y"], function(x=[[1.0, 2.0]])["y"]
    assert single.shape.as_list() == [] and square.shape.as_list() == [1, 2]
    assert [f.tolist() for f in run([single, square])] == [20.0, [[10.0, 20.0]]]


def test_variables_can_be_changed_and_trained(tmp_path) -> None:
    model = load_v2(saved(tmp_path))
    v, local = model.variables
    assert v in tf.trainable_variables()
    assert local not in tf.trainable_variables()
    result = model.signatures["serving_default"](x=[3.0])["y"]
    (slope,) = tf.gradients(result, v)
    with tf.Session() as session:
        begin(session)
        assert session.run([result, slope, v.assign(1.0)])[:2] == [[30.0], 6.0]
        assert session.run(result) == [6.0]


def test_two_models_do_not_meet(tmp_path) -> None:
    path = saved(tmp_path)
    first, second = load_v2(path), load_v2(path)
    with tf.Session() as session:
        begin(session)
        session.run(first.variables[0].assign(0.0))
        assert session.run([m.variables[0] for m in (first, second)]) == [0.0, 5.0]


def test_a_function_from_any_tensors_to_others(tmp_path) -> None:
    model = load_v2(saved(tmp_path))
    double = model.prune("mul:0", {"y": "y:0"})
    assert run(double([4.0])["y"]) == [8.0]
    by_name = model.prune("x:0", model.graph.get_tensor_by_name("y:0"))
    assert run(by_name(x=[4.0])) == [40.0]
    with pytest.raises(TypeError, match="takes"):
        double(1.0, 2.0)
    with pytest.raises(ValueError, match="depends on placeholder x"):
        model.prune([], "y:0")


def with_words(folder: Path) -> str:
    """A model with a table that a file fills."""
    words = folder / "words.txt"
    words.write_text("a\nb\nc\n")
    path = str(folder / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.contrib.lookup.index_table_from_file(str(words), default_value=-1)
        x = tf.placeholder(tf.string, [None])
        session.run(table.initializer)
        tf.saved_model.simple_save(
            session, path, {"x": x}, {"y": table.lookup(x)}, legacy_init_op=table.initializer
        )
    words.unlink()
    return path


def test_tables_and_assets(tmp_path) -> None:
    model = load_v2(with_words(tmp_path), ["serve"])
    (place,) = model.asset_paths
    found = run([model.signatures["serving_default"](["c", "a", "z"])["y"], place.asset_path])
    np.testing.assert_array_equal(found[0], [2, 0, -1])
    assert Path(found[1].decode()).name == "words.txt"


@pytest.mark.parametrize("eager", [False, True])
def test_a_loaded_model_is_saved_and_loaded_again(tmp_path, eager) -> None:
    place, found = with_words(tmp_path), []
    for number in range(2):
        again = str(tmp_path / f"again{number}")
        with eager_mode(alone=True) if eager else tf.Graph().as_default():
            model: Any = load_v2(place)
            with contextlib.nullcontext() if eager else tf.Session():
                tf.saved_model.save(model, again, signatures=model.signatures)
        shutil.rmtree(place)
        place = again
        with eager_mode(alone=True):
            call = load_v2(place).signatures["serving_default"]
            found.append(call(tf.constant(["c", "a", "z"]))["y"].numpy().tolist())
    assert found == [[2, 0, -1]] * 2


def test_inputs_are_named(tmp_path) -> None:
    function = load_v2(saved(tmp_path)).signatures["serving_default"]
    for args, kwargs in (((), {}), (([1.0], [2.0]), {}), (([1.0],), {"x": [1.0]}), ((), {"z": 1})):
        with pytest.raises(TypeError, match="x"):
            function(*args, **kwargs)


def test_what_cannot_be_loaded_says_why(tmp_path) -> None:
    path = str(tmp_path / "two")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        info = tf.saved_model.build_tensor_info
        signature = tf.saved_model.build_signature_def({}, {"y": info(x + 1)})
        builder = tf.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(session, ["a"])
        builder.add_meta_graph(["b"], signature_def_map={"key": signature})
        builder.save()
    with pytest.raises(ValueError, match="2 MetaGraphs"):
        load_v2(path)
    with pytest.raises(RuntimeError, match="could not be found"):
        load_v2(path, "c")
    assert list(load_v2(path, "a").signatures) == []
    with pytest.raises(UnliftableError, match="needs an input for each placeholder"):
        load_v2(path, {"b"})
    assert tf.compat.v2.saved_model.load is load_v2 is tf.saved_model.load_v2


# ---------------------------------------------------------------- where operations run at once
@pytest.fixture
def at_once():
    with eager_mode(alone=True):
        yield


def test_signatures_run_at_once(tmp_path, at_once) -> None:
    model = load_v2(saved(tmp_path))
    call = model.signatures["serving_default"]
    assert call([1.0, 0.0])["y"].numpy().tolist() == [10.0, 0.0]
    assert call(x=2.0)["y"].numpy() == 20.0
    assert call(x=[[1.0, 2.0]])["y"].numpy().tolist() == [[10.0, 20.0]]
    assert call(x=tf.constant([0.0, 7.0]))["rows"].values.numpy().tolist() == [7.0]


def test_gradients_lead_to_the_variables_of_a_model(tmp_path, at_once) -> None:
    model = load_v2(saved(tmp_path, rows=False))
    call = model.signatures["serving_default"]
    v, local = model.variables
    assert (v.trainable, local.trainable) == (True, False)
    with tf.GradientTape() as tape:
        y = call([3.0])["y"]
    assert list(tape.watched_variables()) == [v]
    assert tape.gradient(y, v).numpy() == 6.0
    v.assign(1.0)
    local.assign(3.0)
    assert call([3.0])["y"].numpy() == [9.0]
    assert tf.function(lambda x: call(x)["y"] + 1.0)([3.0]).numpy() == [10.0]


def test_references_keep_their_values_between_calls(tmp_path, at_once) -> None:
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        total = tf.Variable(2.0, name="total", use_resource=False)
        session.run(total.initializer)
        tf.saved_model.simple_save(session, path, {"x": x}, {"y": tf.assign_add(total, x)})
    first, second = load_v2(path), load_v2(path)
    assert first.variables == []
    values = [m.signatures["serving_default"](3.0)["y"].numpy() for m in (first, second, first)]
    assert values == [5.0, 5.0, 8.0]
    assert first.prune([], "total:0")().numpy() == 8.0


def test_branches_and_loops_of_version_1_run_at_once(tmp_path, at_once) -> None:
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        n = tf.placeholder(tf.int32, [])
        v = tf.Variable(10, use_resource=True)
        session.run(v.initializer)
        total = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + i * v), [0, 0])[1]
        y = tf.cond(n > 3, lambda: total, lambda: -v)
        tf.saved_model.simple_save(session, path, {"n": n}, {"y": y})
    call = load_v2(path).signatures["serving_default"]
    assert [int(call(n)["y"]) for n in (5, 3)] == [100, -10]


def test_two_models_at_once_do_not_meet(tmp_path, at_once) -> None:
    path = saved(tmp_path)
    first, second = load_v2(path), load_v2(path)
    first.variables[0].assign(0.0)
    assert [m.variables[0].numpy() for m in (first, second)] == [0.0, 5.0]


def test_a_model_loaded_in_a_function_is_loaded_outside_of_it(tmp_path, at_once) -> None:
    path, held = saved(tmp_path), []

    @tf.function
    def called(x):
        held.append(load_v2(path))
        return held[0].signatures["serving_default"](x)["y"]

    assert called([2.0]).numpy() == [20.0]
    assert held[0].variables[0].numpy() == 5.0


def test_models_of_tensorflow_2_are_told_apart(tmp_path) -> None:
    path = saved(tmp_path)
    file = Path(path, "saved_model.pb")
    model = tf.saved_model.loader.parse_saved_model(path)
    model.meta_graphs[0].object_graph_def.nodes.add()
    file.write_bytes(model.SerializeToString())
    with pytest.raises(tf.errors.UnimplementedError, match="tf.saved_model.load"):
        load_v2(path)


def test_models_with_variables_are_loaded_with_the_behaviour_of_version_2(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        v = tf.Variable(3.0, use_resource=True)
        session.run(v.initializer)
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": x * v})
    tf.enable_tensor_equality()
    try:
        with eager_mode(alone=True):
            loaded = tf.saved_model.load_v2(str(tmp_path / "model"))
            assert loaded.signatures["serving_default"](tf.constant(2.0))["y"].numpy() == 6.0
            assert [v.numpy() for v in loaded.variables] == [3.0]
    finally:
        tf.disable_tensor_equality()
