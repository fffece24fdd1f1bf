"""`tf.saved_model.save`: what a model of objects gives back, to objects and to sessions."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.variables.trackable import NoDependency
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.ops.composed.defined_function import Defun
from opdock.saved_model import revived

VECTOR = TensorSpec([None], tf.float32)


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


class Dense(tf.Module):
    """y = x w, and how often it was asked."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w = tf.Variable(np.full([2, width], 2.0, np.float32), use_resource=True)
        self.asked = tf.Variable(0, trainable=False, use_resource=True)

    @tf.function(input_signature=[TensorSpec([None, 2], tf.float32)])
    def __call__(self, x: Any) -> Any:
        self.asked.assign_add(1)
        return {"y": tf.matmul(x, self.w), "asked": self.asked.read_value()}


def save(thing: Any, folder: Path, signatures: Any = None) -> str:
    """Saves what a session has just initialized; gives the model's directory."""
    path = str(folder / "model")
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        tf.saved_model.save(thing, path, signatures)
    return path


def found(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches, feeds)


def module(**parts: Any) -> tf.Module:
    made = tf.Module()
    for name, part in parts.items():
        setattr(made, name, part)
    return made


# ---------------------------------------------------------------- objects
def test_outputs_of_signatures_are_described_by_their_names(tmp_path: Path) -> None:
    again = tf.saved_model.load_v2(save(Dense(3), tmp_path))
    outputs = again.signatures["serving_default"].structured_outputs
    assert outputs == {
        "y": TensorSpec([None, 3], tf.float32, "y"),
        "asked": TensorSpec([], tf.int32, "asked"),
    }


def test_variables_and_functions_come_back(tmp_path: Path) -> None:
    path = save(Dense(3), tmp_path)
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        assert loaded.w.trainable and not loaded.asked.trainable
        outputs = loaded([[1.0, 2.0]])
        (grad,) = tf.gradients(outputs["y"], loaded.w.handle)
        outputs, grad = found([outputs, grad])
        assert outputs["y"].tolist() == [[6, 6, 6]] and outputs["asked"] == 1
        assert grad.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_a_session_has_the_only_function_as_its_signature(tmp_path: Path) -> None:
    path = save(Dense(1), tmp_path)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/predict"
        names = {key: info.name for key, info in signature.outputs.items()}
        feeds = {signature.inputs["x"].name: [[1.0, 0.5]]}
        assert [session.run(names, feeds)["asked"] for _ in range(2)] == [1, 2]
        assert session.run(names, feeds)["y"].tolist() == [[3]]


def test_a_signature_may_have_no_results(tmp_path: Path) -> None:
    asked = tf.Variable(0, use_resource=True)

    @tf.function(input_signature=[TensorSpec([], tf.int32)])
    def ask(times: Any) -> Any:
        asked.assign_add(times)
        return ()

    @tf.function(input_signature=[])
    def count() -> Any:
        return asked.read_value()

    root = module(asked=asked, ask=ask, count=count)
    path = save(root, tmp_path, {"ask": ask, "count": count})
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = tf.saved_model.load(session, ["serve"], path).signature_def
        assert dict(signatures["ask"].outputs) == {} and list(signatures["ask"].inputs) == ["times"]
        assert session.run(signatures["count"].outputs["output_0"].name) == 0


def test_a_function_is_saved_for_all_that_it_was_called_with(tmp_path: Path) -> None:
    @tf.function
    def power(x: Any, times: int = 2, negative: bool = False) -> Any:
        for _ in range(times - 1):
            x = x * x
        return -x if negative else x

    three = tf.constant(3.0)
    power(three), power(three, 3), power(tf.constant([1, 2]), negative=True)
    path = save(module(power=power), tmp_path)
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        two = tf.constant(2.0)
        results = [loaded.power(two), loaded.power(two, times=3), loaded.power([1, 3], 2, True)]
        assert [np.asarray(r).tolist() for r in found(results)] == [4, 16, [-1, -9]]
        with pytest.raises(ValueError, match="Could not find matching function to call"):
            loaded.power(two, 4)


def test_what_objects_share_is_one_object(tmp_path: Path) -> None:
    one = Dense(1)
    root = module(first=one, layers=[one, Dense(2)], named={"a": one, "b": [tf.constant(1.0)]})
    path = save(root, tmp_path)
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        assert loaded.first is loaded.layers[0] is loaded.named["a"]
        assert loaded.layers[1].w.shape.as_list() == [2, 2]


def test_control_flow_constants_and_random_numbers(tmp_path: Path) -> None:
    table = tf.constant([1.0, 10.0, 100.0])

    @tf.function(input_signature=[TensorSpec([], tf.int32), VECTOR])
    def grown(n: Any, x: Any) -> Any:
        inside = tf.random.uniform([], 0.5, 1.5)
        x = tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2.0), [0, x])[1]
        return tf.cond(inside > 2.0, lambda: x, lambda: x + tf.gather(table, n))

    path = save(module(grown=grown), tmp_path)
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        assert found(loaded.grown(2, [1.0, 2.0])).tolist() == [104, 108]


def test_tables_take_their_files_along(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    initializer = tf.lookup.TextFileInitializer(
        str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )  # fmt: skip
    numbers = tf.lookup.KeyValueTensorInitializer(["x"], tf.constant([7], tf.int64))
    text = TensorSpec([None], tf.string)
    root = module(
        ids=tf.lookup.StaticVocabularyTable(initializer, 1),
        plain=tf.lookup.StaticHashTable(numbers, -1),
    )
    root.look = tf.function(
        lambda keys: (root.ids.lookup(keys), root.plain.lookup(keys)), input_signature=[text]
    )
    path = save(root, tmp_path, root.look)
    words.unlink()
    assert (tmp_path / "model/assets/words.txt").read_text() == "a\nb\n"
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        assert [r.tolist() for r in found(loaded.look(["b", "x"]))] == [[1, 2], [-1, 7]]
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], path)
        outputs = meta.signature_def["serving_default"].outputs
        (given,) = meta.signature_def["serving_default"].inputs.values()
        names = [outputs[key].name for key in sorted(outputs)]
        assert [r.tolist() for r in session.run(names, {given.name: ["x"]})] == [[2], [7]]


@pytest.mark.parametrize("told", [True, False])
def test_what_was_loaded_can_be_saved_again(tmp_path: Path, told: bool) -> None:
    path = save(Dense(2), tmp_path)
    with tf.Graph().as_default():
        loaded = tf.saved_model.load_v2(path)
        change = loaded.w.assign(np.zeros([2, 2]))
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), change])
            signatures = loaded.signatures if told else None
            tf.saved_model.save(loaded, str(tmp_path / "again"), signatures)
    with tf.Graph().as_default():
        again = tf.saved_model.load_v2(str(tmp_path / "again"))
        assert found(again([[1.0, 1.0]])["y"]).tolist() == [[0, 0]]
        outputs = again.signatures["serving_default"](tf.constant([[1.0, 1.0]]))
        assert found(outputs["y"]).tolist() == [[0, 0]]


def test_what_could_be_called_can_be_called(tmp_path: Path) -> None:
    inner = Dense(2)
    loaded = tf.saved_model.load_v2(save(module(inner=inner), tmp_path))
    assert callable(loaded.inner) and not callable(loaded)


def test_lists_and_dicts_have_their_functions_and_places(tmp_path: Path) -> None:
    v = tf.Variable(2.0, use_resource=True)
    square = tf.function(lambda: v * v, input_signature=[])
    thing = module(parts=[v, "no object", square], named={"v": v, "f": square, "n": 1})
    loaded = tf.saved_model.load_v2(save(thing, tmp_path))
    assert loaded.parts[1] is None and set(loaded.named) == {"v", "f"}
    assert loaded.parts[0] is loaded.named["v"]
    assert found([loaded.parts[2](), loaded.named["f"]()]) == [4.0, 4.0]


def test_an_object_says_which_of_its_functions_a_model_has(tmp_path: Path) -> None:
    class Library(tf.Module):
        def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Any:
            hidden, self.step = self.step, None
            found = super()._trackable_children(save_type, **kwargs)
            self.step = hidden
            return found

    thing = Library()
    thing.step = tf.function(lambda: tf.constant(1.0), input_signature=[])
    thing.call = tf.function(lambda: tf.constant(2.0), input_signature=[])
    loaded = tf.saved_model.load_v2(save(thing, tmp_path))
    assert hasattr(loaded, "call") and not hasattr(loaded, "step")


def test_variables_have_their_names_and_tags_are_those_of_the_model(tmp_path: Path) -> None:
    path = save(module(v=tf.Variable(2.0, name="a/v", use_resource=True)), tmp_path)
    with tf.Graph().as_default():
        assert tf.saved_model.load_v2(path, ["serve"]).v.name == "a/v:0"
        with tf.name_scope("scope"):
            v = tf.saved_model.load_v2(path, "serve").v
        assert v.name == "scope/a/v:0" and v.trainable
        assert v in tf.global_variables() and not tf.trainable_variables()
        with pytest.raises(ValueError, match="incompatible argument tags=eval"):
            tf.saved_model.load_v2(path, "eval")


def test_concrete_functions_take_other_shapes_where_operations_run_at_once() -> None:
    with eager_mode(alone=True):
        w = tf.Variable(3.0)
        function = tf.function(lambda x: w * x**2.0, input_signature=[TensorSpec([None])])
        call = function.get_concrete_function()
        assert call(tf.constant(2.0)).numpy() == 12.0
        assert call(tf.ones([2, 2])).shape == (2, 2)
        with tf.GradientTape() as tape:
            x = tf.constant(2.0)
            tape.watch(x)
            y = call(x)
        assert [g.numpy() for g in tape.gradient(y, [x, w])] == [12.0, 4.0]


def test_names_of_modules_may_begin_with_a_line_where_operations_run_at_once() -> None:
    class _Part(tf.Module):
        pass

    with eager_mode(alone=True):
        assert _Part().name == "__part"


def test_a_concrete_function_of_a_loaded_function_is_called(tmp_path: Path) -> None:
    function = tf.function(lambda x, y=2.0: x * y)
    function.get_concrete_function(TensorSpec([], tf.float32), y=TensorSpec([], tf.float32))
    loaded = tf.saved_model.load_v2(save(module(f=function), tmp_path))
    concrete = loaded.f.get_concrete_function()
    assert found([concrete(3.0, y=4.0), concrete(3.0, 5.0)]) == [12.0, 15.0]


def test_optimizers_keep_their_slots(tmp_path: Path) -> None:
    dense, optimizer = Dense(1), tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(dense.w.read_value()), var_list=[dense.w])
    root = tf.train.Checkpoint(dense=dense, optimizer=optimizer)
    path = str(tmp_path / "model")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        tf.saved_model.save(root, path)
    with tf.Graph().as_default():
        again = Dense(1)
        slots = tf.train.AdamOptimizer(0.1)
        slots.minimize(tf.reduce_sum(again.w.read_value()), var_list=[again.w])
        status = tf.train.Checkpoint(dense=again, optimizer=slots).restore(
            path + "/variables/variables"
        )
        with tf.Session() as session:
            status.initialize_or_restore(session)
            np.testing.assert_allclose(session.run(slots.get_slot(again.w, "m")), 0.1, 1e-6)
            np.testing.assert_allclose(session.run(again.w), 1.9, 1e-6)


# ---------------------------------------------------------------- mistakes
def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    one = tf.Variable(1.0, use_resource=True)
    signed = tf.function(lambda x: x * one, input_signature=[VECTOR])
    fed = tf.placeholder(tf.float32, [])
    nested = tf.function(lambda x: {"a": {"b": x}}, input_signature=[VECTOR])
    unsigned = tf.function(lambda x: x)
    reserved = module(f=tf.function(lambda x: x, input_signature=[VECTOR]))
    reserved.signatures = tf.Module()
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (3, None, ValueError, "Expected a Trackable object for export"),
        (module(f=signed), None, AssertionError, "captured by functions must be tracked"),
        (module(f=tf.function(lambda x: x * fed, input_signature=[VECTOR])), None, ValueError,
         "not a simple constant"),
        (module(), nested, ValueError, "dictionary containing non-Tensor value"),
        (module(), unsigned, ValueError, "Only `tf.functions` with an input signature"),
        (reserved, reserved.f, ValueError, "reserved attribute"),
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for thing, signatures, kind, words in cases:
            with pytest.raises(kind, match=words):
                tf.saved_model.save(thing, path, signatures)
    assert not (tmp_path / "model/saved_model.pb").exists()


def test_variables_without_values_or_session(tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    dense = Dense(1)
    with pytest.raises(tf.errors.FailedPreconditionError):
        with tf.Session():
            tf.saved_model.save(dense, path)
    with pytest.raises((RuntimeError, ValueError, tf.errors.FailedPreconditionError)):
        tf.saved_model.save(dense, path)
    assert not (tmp_path / "model/saved_model.pb").exists()


def test_concrete_functions_are_functions_of_tensors() -> None:
    dense = Dense(1)
    concrete = dense.__call__.get_concrete_function()
    assert concrete is dense.__call__.get_concrete_function()
    assert concrete.output_shapes["y"].as_list() == [None, 1]
    assert found(concrete(tf.constant([[1.0, 1.0]]))["y"]).tolist() == [[4]]
    twice = tf.function(lambda x, y=1.0: x + y).get_concrete_function(VECTOR, 2.0)
    assert found(twice(tf.constant([1.0]))).tolist() == [3]
    with pytest.raises(TypeError, match="takes"):
        twice(tf.constant([1.0]), z=1)


# ---------------------------------------------------------------- functions of functions
def again(thing: Any, folder: Path, times: int) -> Any:
    """A thing that was saved and loaded some times, where operations run as they are made."""
    for i in range(times):
        tf.saved_model.save(thing, str(folder / str(i)))
        thing = tf.saved_model.load_v2(str(folder / str(i)))
    return thing


@pytest.mark.parametrize("times", [1, 3])
def test_functions_that_are_operations_come_along(tmp_path: Path, times: int) -> None:
    @Defun(tf.float32)
    def inner(x: Any) -> Any:
        return x + 1.0

    @Defun(tf.float32)
    def middle(x: Any) -> Any:
        return inner(x) * 2.0

    @tf.function(input_signature=[TensorSpec([], tf.float32)])
    def outer(x: Any) -> Any:
        return middle(x)

    with eager_mode(alone=True), tf.device("/cpu:0"):
        made = again(module(f=outer), tmp_path, times)
        with tf.device(None):
            made = again(made, tmp_path / "elsewhere", 1)
        assert made.f(tf.constant(1.0)).numpy() == 4.0


@pytest.mark.parametrize("times", [1, 2])
def test_partial_functions(tmp_path: Path, times: int) -> None:
    def f(a: Any, b: Any, c: Any = 3.0) -> Any:
        return a, b, c

    with eager_mode(alone=True):
        fixed = tf.function(
            functools.partial(f, 1, c=4), input_signature=[TensorSpec([], tf.float32)]
        )
        free = tf.function(functools.partial(f, b=tf.zeros([1]), c=tf.ones([1])))
        free(tf.constant(2))
        made = again(module(fixed=fixed, free=free), tmp_path, times)
        assert [t.numpy() for t in made.fixed(3.0)] == [1, 3.0, 4]
        assert [t.numpy() for t in made.free(tf.constant(2))] == [2, 0.0, 1.0]
        with pytest.raises(ValueError, match="Python inputs incompatible with input_signature"):
            made.fixed(tf.constant([1.0]))


def test_a_signature_of_a_value_of_several_tensors(tmp_path: Path) -> None:
    with eager_mode(alone=True):
        spec = tf.RaggedTensorSpec([None, None], tf.int32)
        doubled = tf.function(lambda x: x * 2, input_signature=[spec])
        made = again(module(f=doubled), tmp_path, 2)
        assert made.f(tf.ragged.constant([[1, 2], [3]])).to_list() == [[2, 4], [6]]
        info = made.signatures["serving_default"]
        assert isinstance(info.structured_outputs["output_0"], tf.RaggedTensorSpec)


class Momentum(tf.Module):
    """An optimizer with slots, that makes them as Keras' do."""

    def __init__(self) -> None:
        super().__init__()
        self.slots: Any = NoDependency({})

    def get_slot_names(self) -> list[str]:
        return ["m"]

    def get_slot(self, var: Any, name: str) -> Any:
        return self.slots[id(var)]

    def add_slot(self, var: Any, slot_name: str, initializer: Any) -> Any:
        self.slots[id(var)] = tf.Variable(initializer, trainable=False, use_resource=True)
        return self.slots[id(var)]


def test_slots_are_those_of_the_optimizer_that_is_loaded(tmp_path: Path) -> None:
    if "momentum_of_test" not in revived.registered_identifiers():
        revived.register_revived_type(
            "momentum_of_test", lambda thing: isinstance(thing, Momentum),
            [revived.VersionedTypeRegistration(lambda proto: Momentum(), 1, 1, 1)],
        )  # fmt: skip
    with eager_mode(alone=True):
        root = module(v=tf.Variable(1.0), optimizer=Momentum())
        slot = root.optimizer.add_slot(root.v, "m", 5.0)
        root.f = tf.function(lambda: slot.assign_add(1.0), input_signature=[])
        made = again(root, tmp_path, 2)
        assert made.f().numpy() == 6.0
        assert made.optimizer.get_slot(made.v, "m").numpy() == 6.0


def test_objects_that_only_a_model_has(tmp_path: Path) -> None:
    class Extra(AutoTrackable):
        def _list_extra_dependencies_for_serialization(self, cache: Any) -> dict[str, Any]:
            return cache.setdefault(self, {"a": tf.Variable(5.0)})  # type: ignore[no-any-return]

    with eager_mode(alone=True):
        assert again(Extra(), tmp_path, 1).a.numpy() == 5.0
        other = Extra()
        other.a = tf.Variable(3.0)
        with pytest.raises(ValueError, match="has an attribute named a, which is reserved"):
            tf.saved_model.save(other, str(tmp_path / "other"))
