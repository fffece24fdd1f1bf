"""Steps that take a batch first: the rest is compiled for its shape, and nothing happens twice."""

import numpy as np
import pytest

import opdock as tf
from opdock import shapes
from opdock.runtime.cache.in_two import InTwo

pytestmark = pytest.mark.usefixtures("graph")
ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)


@pytest.fixture
def session():
    with tf.Session() as made:
        yield made


def batches(size=4, rows=ROWS):
    return tf.data.Dataset.from_tensor_slices(rows).batch(size)


def taken(dataset):
    return tf.data.make_one_shot_iterator(dataset).get_next()


def the_program(session, fetches, feeds=None):
    return session._program(fetches, feeds)


def test_the_rest_is_compiled_for_the_batch_that_came(session):
    x = taken(batches())
    y = tf.reduce_sum(tf.matmul(x, x, transpose_a=True) * 2.0)
    assert x.shape.as_list() == [None, 2]
    sums = [session.run(y) for _ in range(3)]
    np.testing.assert_allclose(sums, [2 * (p.T @ p).sum() for p in np.split(ROWS, [4, 8])])
    program = the_program(session, y)
    assert isinstance(program, InTwo)
    known = [s for n in program.block.nodes for s in n.out_shapes]
    assert all(map(shapes.is_fully_defined, known))
    with pytest.raises(tf.errors.OutOfRangeError, match="IteratorGetNext"):
        session.run(y)


def test_training_is_that_of_fed_batches(session):
    def trained(x):
        w = tf.Variable([[0.5], [-0.25]])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        return w, tf.train.GradientDescentOptimizer(1e-3).minimize(loss)

    placeholder = tf.placeholder(tf.float32, [None, 2])
    (w, step), (v, fed) = trained(taken(batches().repeat(3))), trained(placeholder)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        for part in np.split(ROWS, [4, 8]):
            session.run(step)
            session.run(fed, {placeholder: part})
    np.testing.assert_array_equal(*session.run([w, v]))


def test_what_waits_for_an_element_waits_for_one(session):
    x = taken(tf.data.Dataset.range(9).batch(2))
    count = tf.Variable(0, dtype=tf.int64)
    with tf.control_dependencies([x]):
        counted = tf.assign_add(count, 1)
    step = [counted, tf.reduce_sum(x), x.op]
    session.run(tf.global_variables_initializer())
    assert [session.run(step)[:2] for _ in range(5)] == [[1, 1], [2, 5], [3, 9], [4, 13], [5, 8]]
    assert isinstance(the_program(session, step), InTwo)


def test_an_effect_that_an_element_waits_for_happens_once(session):
    count = tf.Variable(0)
    with tf.control_dependencies([tf.assign_add(count, 1)]):
        x = taken(batches())
    session.run(tf.global_variables_initializer())
    assert session.run(tf.reduce_sum(x)) == ROWS[:4].sum()
    assert session.run([count, tf.reduce_sum(x)])[1] == ROWS[4:8].sum()
    assert session.run(count) == 2


def test_an_iterator_may_begin_in_the_step_that_takes(session):
    iterator = tf.data.make_initializable_iterator(batches())
    total = tf.reduce_sum(iterator.get_next())
    for _ in range(2):
        assert session.run([iterator.initializer, total])[1] == ROWS[:4].sum()


def test_a_step_may_give_a_queue_what_it_takes(session):
    queue = tf.FIFOQueue(9, tf.float32)
    step = [queue.enqueue(3.0), tf.square(queue.dequeue())]
    assert [session.run(step)[1] for _ in range(2)] == [9.0, 9.0]
    other = tf.FIFOQueue(9, tf.float32)
    chain = [other.enqueue(tf.square(queue.dequeue())), queue.enqueue(2.0), other.size()]
    for _ in range(2):
        session.run(chain)
    assert session.run(other.size()) == 2


def test_what_a_queue_gives_has_the_shape_that_it_has(session):
    queue = tf.FIFOQueue(9, tf.float32)
    x = queue.dequeue()
    y = tf.reduce_sum(x * 2.0, axis=-1)
    for value in (np.ones(3), np.ones((2, 3)), np.ones(5), np.ones(3)):
        session.run(queue.enqueue(value.astype(np.float32)))
        np.testing.assert_array_equal(session.run(y), 2 * value.sum(-1))
    assert isinstance(the_program(session, y), InTwo)


def test_what_does_not_fit_is_told_by_the_kernel(session):
    x = taken(tf.data.Dataset.from_generator(lambda: iter([np.ones((2, 3))]), tf.float32))
    y = tf.matmul(x, tf.ones([4, 1]), name="product")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)Matrix size.*product"):
        session.run(y)


def test_many_shapes_make_few_programs(session):
    rows = [np.full(n, n, np.float32) for n in range(1, 40)]
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), tf.float32, [None])
    total = tf.reduce_sum(taken(dataset) * 2.0)
    assert [session.run(total) for _ in rows] == [2 * n * n for n in range(1, 40)]
    assert len(the_program(session, total)._rests) == 3  # two sizes, and all


def test_what_a_data_set_keeps_stays_as_it_is(session):
    x = taken(batches(10).cache().repeat(3))
    v = tf.Variable(tf.zeros([10, 2]))
    session.run(v.initializer)
    kept, passed = tf.assign(v, x), x + 0.0
    first, _ = session.run([x, passed])
    first[:] = -1
    session.run([kept, passed])
    session.run(tf.assign_add(v, tf.ones([10, 2])))
    np.testing.assert_array_equal(session.run(passed), ROWS)


def test_a_trace_and_an_explanation_have_both_parts(session):
    x = taken(batches())
    y = tf.matmul(x, x, transpose_a=True, name="product")
    assert {"IteratorGetNext", "product"} <= {r.node for r in session.explain(y).rows}
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = tf.RunMetadata()
    session.run(y, options=options, run_metadata=metadata)
    traced = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
    graphs = {n.name for g in metadata.partition_graphs for n in g.node}
    assert {"IteratorGetNext", "product"} <= traced & graphs
    assert {"IteratorGetNext", "product"} <= {r.node for r in session.explain(y).rows}


def test_a_callable_and_other_threads_share_an_iterator(session):
    import concurrent.futures

    x = taken(tf.data.Dataset.range(400).batch(2))
    step = session.make_callable(tf.reduce_sum(x))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(lambda _: step(), range(200)))
    assert found == [4 * n + 1 for n in range(200)]
