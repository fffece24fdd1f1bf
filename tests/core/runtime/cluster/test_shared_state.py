"""What sessions of one server share, and what the end of one means to its steps."""

from __future__ import annotations

import threading

import pytest

import opdock as tf


def test_assigning_looks_at_the_shape_that_the_variable_has(cluster):
    servers = cluster(ps=1, worker=1)
    target = servers["worker"][0].target

    def shared(value, run):
        with tf.Graph().as_default(), tf.device("/job:ps"):
            w = tf.Variable(value, name="w", use_resource=False)
            with tf.Session(target) as sess:
                return run(sess, w)

    shared([1, 2, 3], lambda sess, w: sess.run(w.initializer))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[3\] rhs shape= \[\]"):
        shared(86, lambda sess, w: sess.run(w.initializer))
    assert shared([0, 0, 0], lambda sess, w: sess.run(w).tolist()) == [1, 2, 3]
    free = shared(7, lambda sess, w: sess.run(tf.assign(w, [5, 6], validate_shape=False)))
    assert free.tolist() == [5, 6]
    assert shared([8, 9], lambda sess, w: sess.run(w.initializer)) is None
    assert shared([0, 0], lambda sess, w: sess.run(w).tolist()) == [8, 9]


@pytest.mark.parametrize("jobs", [{"worker": 1}, {"worker": 1, "ps": 1}])
def test_what_waits_when_its_session_is_closed_is_told_so(cluster, jobs):
    servers = cluster(**jobs)
    with tf.device(f"/job:{[*jobs][-1]}"):
        queue = tf.FIFOQueue(2, [tf.float32])
        count = tf.get_variable("count", initializer=0, use_resource=True)
        with tf.control_dependencies([count.assign_add(1)]):
            never = queue.dequeue()
    sess, other = (tf.Session(servers["worker"][0].target) for _ in range(2))
    sess.run(count.initializer)
    told = []

    def wait():
        with pytest.raises(tf.errors.CancelledError, match="Session::Close") as found:
            sess.run(never)
        told.append(found)

    thread = threading.Thread(target=wait)
    thread.start()
    while not other.run(count):
        pass
    sess.close()
    thread.join()
    assert told


# ---------------------------------------------------------------- what outlives its session
def _counting(shared_name: str = "") -> tuple[tf.Operation, tf.Tensor]:
    """An iterator over 1, 2, ..., each counted up to in a loop, which asks whether to go on."""
    numbers = tf.data.Dataset.range(100).map(
        lambda i: tf.while_loop(lambda n: n <= i, lambda n: n + 1, [tf.constant(0, tf.int64)])
    )
    made = tf.data.make_initializable_iterator(numbers.prefetch(2), shared_name=shared_name)
    return made.initializer, made.get_next()


def test_an_iterator_goes_on_when_the_session_that_began_it_has_ended(cluster):
    servers = cluster(ps=1, worker=1)
    begin, following = _counting("counting")
    alone = tf.train.Server.create_local_server()
    for target in (servers["worker"][0].target, alone.target):
        with tf.Session(target) as first:
            first.run(begin)
            assert first.run(following) == 1
        with tf.Session(target) as second:
            assert [second.run(following) for _ in range(3)] == [2, 3, 4]
            second.run(begin)  # in a place that another session made
            assert second.run(following) == 1


def test_an_iterator_without_a_shared_name_is_its_session_s_own():
    server = tf.train.Server.create_local_server()
    begin, following = _counting()
    first, second = tf.Session(server.target), tf.Session(server.target)
    first.run(begin)
    assert first.run(following) == 1
    with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
        second.run(following)
    second.run(begin)
    assert second.run(following) == 1
    second.close()
    assert first.run(following) == 2
    first.close()


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_session_that_ends_waits_for_no_iterator_that_it_shares(cluster, tasks):
    servers = cluster(worker=tasks)
    target = servers["worker"][0].target
    asked, go_on = threading.Event(), threading.Event()

    def slow(i):
        asked.set()
        go_on.wait()
        return i

    numbers = tf.data.Dataset.range(4).map(lambda i: tf.py_func(slow, [i], tf.int64), 2)
    made = tf.data.make_initializable_iterator(numbers, shared_name="slow")
    following = made.get_next()
    sess = tf.Session(target)
    sess.run(made.initializer)
    told: list[BaseException] = []

    def wait() -> None:
        try:
            sess.run(following)
        except tf.errors.OpError as e:
            told.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    asked.wait()
    sess.close()
    thread.join()
    assert isinstance(told[0], tf.errors.CancelledError)
    go_on.set()
    with tf.Session(target) as other:
        assert other.run(following) == 0


def test_workers_share_a_reader_and_the_queue_of_its_files(cluster, tmp_path):
    servers = cluster(ps=1, worker=2)
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text("".join(f"{file.name}{i}\n" for i in range(3)))

    def lines(server):
        with tf.Graph().as_default(), tf.device("/job:ps"):
            queue = tf.FIFOQueue(9, tf.string, shapes=[[]], shared_name="files")
            fill = queue.enqueue_many([[str(file) for file in files]])
            reader = tf.TextLineReader(name="lines")
            return tf.Session(server.target), fill, reader.read(queue).value, queue.close()

    (one, fill, first, close), (two, _, second, _) = map(lines, servers["worker"])
    one.run(fill)
    found = [s.run(line) for _ in range(3) for s, line in ((one, first), (two, second))]
    assert found == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
    one.run(close)
    with pytest.raises(tf.errors.OutOfRangeError):
        two.run(second)
