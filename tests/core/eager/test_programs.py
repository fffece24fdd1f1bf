"""Whole programs whose operations run as they are made."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.graph import get_default_graph


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


def test_a_program_enables_it():
    done = run(
        """
        import opdock as tf
        tf.enable_eager_execution()
        tf.enable_eager_execution()
        print(tf.executing_eagerly(), (tf.constant(2) * 3).numpy())
        with tf.Graph().as_default():
            print(tf.executing_eagerly())
        """
    )
    assert done.stdout.split() == ["True", "6", "False"], done.stderr


def test_it_is_enabled_at_the_start_or_not_at_all():
    done = run(
        """
        import opdock as tf
        tf.constant(1)
        try:
            tf.enable_eager_execution()
        except ValueError as e:
            print(e)
        """
    )
    assert "must be called at program startup" in done.stdout, done.stderr


def test_training_with_layers_a_dataset_and_checkpoints(tmp_path):
    tf.set_random_seed(1)
    x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    y = (x @ [[1.0], [2.0], [3.0]]).astype(np.float32)
    dense = tf.layers.Dense(1, kernel_regularizer=lambda w: 1e-6 * tf.reduce_sum(w * w))
    optimizer, step = tf.train.AdamOptimizer(0.1), tf.train.get_or_create_global_step()
    checkpoint = tf.train.Checkpoint(dense=dense, optimizer=optimizer, step=step)
    for batch, wanted in tf.data.Dataset.from_tensor_slices((x, y)).repeat(30).batch(16):
        with tf.GradientTape() as tape:
            loss = tf.losses.mean_squared_error(wanted, dense(batch)) + sum(dense.losses)
        grads = tape.gradient(loss, dense.trainable_variables)
        optimizer.apply_gradients(zip(grads, dense.trainable_variables, strict=True), step)
    assert step.numpy() == 120 and loss.numpy() < 1e-3
    path = checkpoint.save(str(tmp_path / "model"))
    kernel = dense.kernel.numpy()
    dense.kernel.assign(np.zeros_like(kernel))
    checkpoint.restore(path).assert_consumed()
    np.testing.assert_array_equal(dense.kernel.numpy(), kernel)
    assert tf.train.latest_checkpoint(str(tmp_path)) == path and path.endswith("-1")
    # What is made after a restore gets its values when it is made.
    late = tf.train.Checkpoint()
    late.restore(path)
    late.dense = tf.layers.Dense(1)
    late.dense(x)
    np.testing.assert_array_equal(late.dense.kernel.numpy(), kernel)


def test_a_saver_of_named_variables(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    saver = tf.train.Saver([v])
    path = saver.save(None, str(tmp_path / "x"), global_step=3)
    v.assign([0.0, 0.0])
    saver.restore(None, path)
    assert v.numpy().tolist() == [1.0, 2.0] and path.endswith("x-3")
    assert saver.save(None, str(tmp_path / "x"), global_step=4).endswith("x-4")
    with pytest.raises(RuntimeError, match="must specify a list or dict of variables"):
        tf.train.Saver()


def test_a_manager_of_checkpoints(tmp_path):
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), str(tmp_path), max_to_keep=1)
    first, second = manager.save(), manager.save()
    assert manager.checkpoints == [second] and second != first
    v.assign(5.0)
    tf.train.Checkpoint(v=v).restore(manager.latest_checkpoint)
    assert v.numpy() == 1.0


def test_functions_are_graphs_over_the_same_variables():
    v = tf.Variable(2.0)

    @tf.function
    def scaled(x):
        v.assign_add(x)
        return v * x

    assert scaled(tf.constant(3.0)).numpy() == 15.0 and v.numpy() == 5.0
    with tf.GradientTape() as tape:
        y = scaled(tf.constant(1.0))
    assert tape.gradient(y, v).numpy() == 1.0


def test_control_flow_is_python_s():
    turns = []

    def body(i, total):
        turns.append(int(i))
        return i + 1, total + float(i)

    i, total = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    assert turns == [0, 1, 2] and (i.numpy(), total.numpy()) == (3, 3.0)
    assert tf.cond(tf.constant(False), lambda: 1, lambda: 2) == 2
    assert tf.map_fn(lambda x: x * 2, tf.constant([1, 2])).numpy().tolist() == [2, 4]
    assert tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy().tolist() == [1, 3, 6]
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), tf.ones([2, 3, 5]), dtype=tf.float32)
    assert outputs.shape == (2, 3, 4)


def test_random_numbers_follow_the_seed():
    tf.set_random_seed(7)
    first = [tf.random_normal([3]).numpy().tolist() for _ in range(2)]
    tf.set_random_seed(7)
    again = [tf.random_normal([3]).numpy().tolist() for _ in range(2)]
    assert first == again and first[0] != first[1]


def test_python_functions_and_their_gradients():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda a: a * a, [x], tf.float32)
    assert y.numpy() == 9.0 and tape.gradient(y, x).numpy() == 6.0
    assert tf.py_func(lambda a: a + 1, [tf.constant(1)], tf.int32).numpy() == 2


def test_iterators():
    dataset = tf.data.Dataset.range(5).shuffle(5, seed=1).batch(2)
    walked = [x.numpy().tolist() for x in dataset]
    assert sorted(x for batch in walked for x in batch) == [0, 1, 2, 3, 4]
    iterator = dataset.make_one_shot_iterator()
    assert [x.numpy().tolist() for x in iterator] == walked
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    with pytest.raises(RuntimeError, match="for element in dataset"):
        dataset.make_initializable_iterator()
    table = tf.constant([10, 20])
    captured = tf.data.Dataset.range(2).map(lambda i: table[i])
    assert [int(x) for x in captured] == [10, 20]


def test_an_operation_is_compiled_once_for_all_values():
    engine = get_default_graph().engine
    x = tf.ones([3, 3])
    for _ in range(2):
        tf.matmul(x, x)
    compiled = []
    original = engine.compile
    engine.compile = lambda *args: compiled.append(args) or original(*args)
    try:
        for i in range(20):
            tf.matmul(x * float(i), x)
        few = len(compiled)
        for i in range(1, 40):
            tf.matmul(tf.ones([i, 3]), x)
    finally:
        del engine.compile
    assert few == 1, "the product of numbers"
    assert len(compiled) < 40, "from some shapes on, there is one for all"


def test_lists_of_tensors_and_arrays():
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2])
    for i in range(3):
        array = array.write(i, [float(i), 1.0])
    assert array.stack().numpy().tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    walked = tf.data.Dataset.from_tensors(array)
    assert [a.stack().shape.as_list() for a in walked] == [[3, 2]]
    assert tf.pad([[1]], [[1, tf.constant(0)], [0, 1]]).numpy().tolist() == [[0, 0], [1, 0]]


def test_devices_by_name():
    with tf.device("/cpu:0"):
        x = tf.ones([2])
    assert x.device.endswith("CPU:0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="GPU"):
        with tf.device("/gpu:7"):
            tf.ones([2]) + 1


def test_seeds_draw_what_they_draw_in_tensorflow():
    numbers = tf.data.Dataset.range(10)
    tf.set_random_seed(42)
    assert [int(e) for e in numbers.shuffle(10)] == [5, 8, 2, 0, 4, 7, 1, 3, 9, 6]
    assert [int(e) for e in numbers.shuffle(10, seed=5)] == [3, 1, 5, 6, 7, 0, 2, 8, 9, 4]
    image = tf.reshape(tf.range(64 * 3), [8, 8, 3])
    crops = [tf.random_crop(image, [2, 2, 3], seed=3) for _ in range(2)]
    assert [int(crop[0, 0, 0]) for crop in crops] == [156, 39]


def test_an_array_of_no_tensors_stacks_to_nothing():
    assert tf.TensorArray(tf.string, 0).stack().shape == (0,)
    assert tf.TensorArray(tf.float32, 0, element_shape=[3]).stack().shape == (0, 3)
    assert tf.map_fn(lambda x: tf.constant(""), tf.constant([]), dtype=tf.string).dtype == tf.string
