"""What trains and records where operations run as they are made, and what is for graphs alone."""

import gc
import weakref

import pytest

import opdock as tf

SCHEDULES = {
    "exponential_decay": (0.1, 10, 0.5),
    "natural_exp_decay": (0.1, 10, 0.5),
    "inverse_time_decay": (0.1, 10, 0.5),
    "polynomial_decay": (0.1, 10),
    "cosine_decay": (0.1, 10),
    "cosine_decay_restarts": (0.1, 10),
    "linear_cosine_decay": (0.1, 10),
    "noisy_linear_cosine_decay": (0.1, 10),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_asked_for_the_rate_of_the_moment(name):
    schedule = getattr(tf.train, name)
    rate, *rest = SCHEDULES[name]
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    found = schedule(rate, step, *rest)
    before = float(found())
    step.assign(5)
    assert float(found()) != before
    with pytest.raises(ValueError, match="global_step is required"):
        schedule(rate, None, *rest)
    traced = tf.function(lambda: schedule(rate, step, *rest)).get_concrete_function()
    assert [t.dtype for t in traced.outputs] == [tf.float32]


def test_an_optimizer_follows_a_schedule():
    step = tf.train.get_or_create_global_step()
    rate = tf.train.piecewise_constant(step, [1], [1.0, 0.25])
    optimizer = tf.train.GradientDescentOptimizer(rate)
    v = tf.Variable(10.0)
    moved = []
    for _ in range(3):
        before = v.numpy()
        optimizer.apply_gradients([(tf.constant(1.0), v)], global_step=step)
        moved.append(before - v.numpy())
    assert moved == [1.0, 1.0, 0.25]


def test_there_is_one_global_step():
    step = tf.train.get_or_create_global_step()
    step.assign_add(3)
    assert tf.train.get_or_create_global_step() is step
    assert tf.train.get_global_step().numpy() == 3
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()


def test_summaries_take_the_global_step(tmp_path):
    tf.train.get_or_create_global_step().assign(4)
    writer = tf.contrib.summary.create_file_writer(str(tmp_path))
    with writer.as_default(), tf.contrib.summary.always_record_summaries():
        tf.contrib.summary.scalar("a", 1.0)
        tf.contrib.summary.scalar("a", 1.0, step=9)
    writer.flush()
    (path,) = tmp_path.iterdir()
    steps = [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value]
    assert steps == [4, 9]


def test_losses_and_summaries_are_kept_by_their_users_alone():
    held = [
        weakref.ref(tf.losses.mean_squared_error([1.0], [3.0])),
        weakref.ref(tf.summary.scalar("a", 1.0)),
    ]
    tf.constant(0)
    gc.collect()
    assert [h() for h in held] == [None, None]
    assert tf.losses.get_losses() == []


def test_scaled_losses_are_differentiated():
    manager = tf.contrib.mixed_precision.FixedLossScaleManager(4.0)
    optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(
        tf.train.GradientDescentOptimizer(0.25), manager
    )
    v = tf.Variable(1.0)
    optimizer.minimize(lambda: v * v)
    assert v.numpy() == 0.5


def test_a_loss_scale_tells_where_it_stands():
    scale = tf.train.experimental.DynamicLossScale(2, increment_period=3)
    ends = "initial_loss_scale=2.0, increment_period=3, multiplier=2.0)"
    assert repr(scale) == f"DynamicLossScale(current_loss_scale=2.0, num_good_steps=0, {ends}"
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        of_all = tf.train.experimental.DynamicLossScale(2, increment_period=3)
    assert repr(of_all) == repr(scale)
    with tf.Graph().as_default():
        alone = tf.train.experimental.DynamicLossScale(2, increment_period=3)
        assert repr(alone) == f"DynamicLossScale({ends}"


@pytest.mark.parametrize("what", [
    lambda: tf.metrics.mean([1.0]),
    lambda: tf.metrics.accuracy([1], [1]),
    lambda: tf.metrics.auc([True], [1.0]),
    lambda: tf.metrics.mean_iou([1], [1], 2),
    lambda: tf.metrics.recall_at_k(tf.constant([[1]], tf.int64), [[0.1, 0.9]], 1),
    lambda: tf.train.string_input_producer(["a"]),
    lambda: tf.train.range_input_producer(3),
    lambda: tf.train.slice_input_producer([[1, 2]]),
    lambda: tf.train.batch([tf.constant(1)], 3),
    lambda: tf.train.batch_join([[tf.constant(1)]], 3),
    lambda: tf.train.shuffle_batch([tf.constant(1)], 3, 10, 2),
    lambda: tf.train.QueueRunner(),
    lambda: tf.train.start_queue_runners(),
    lambda: tf.TextLineReader(),
    lambda: tf.summary.merge_all(),
    lambda: tf.summary.merge([tf.summary.scalar("a", 1.0)]),
    lambda: tf.summary.FileWriter("nowhere"),
])  # fmt: skip
def test_what_is_for_graphs_alone_says_so(what):
    with pytest.raises(RuntimeError, match="not (supported|compatible)"):
        what()


def test_a_queue_is_a_place_to_put_tensors():
    queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    queue.enqueue(1.5)
    queue.enqueue_many([[2.5, 3.5]])
    assert queue.size().numpy() == 3 and queue.dequeue().numpy() == 1.5
    assert queue.dequeue_many(2).numpy().tolist() == [2.5, 3.5]


def test_a_traced_function_draws_what_the_seed_says():
    tf.set_random_seed(3)
    body = tf.function(lambda: tf.random_normal([2])).get_concrete_function().graph
    (drawn,) = [op for op in body.get_operations() if op.type == "RandomStandardNormal"]
    assert (drawn.get_attr("seed"), drawn.get_attr("seed2")) == (3, 3)


def test_copies_of_slots_are_found_on_the_devices_of_their_variables():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        v = tf.Variable(1.0, use_resource=True)
        optimizer = tf.train.MomentumOptimizer(0.5, 0.9)
        strategy.experimental_run_v2(lambda: optimizer.minimize(lambda: v * 2.0, var_list=[v]))
    assert v.numpy() == 0.0
    assert v.devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
