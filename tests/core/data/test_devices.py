"""Elements in the memory of devices: what is copied when, and that they are the same elements."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import array_api_compat.numpy as xp
import numpy as np
import pytest

import opdock as tf
from opdock import dtypes, plugin
from opdock.data import Dataset
from opdock.data.devices import MultiDeviceIterator
from opdock.eager.graph import EagerGraph
from opdock.plugin import BackendSpec, BaseDevice, DeviceAttributes, Probe, hookimpl

NAME = "holder-for-tests"
HOLDER = "/device:HOLDER:0"
OTHER = "/device:HOLDER:1"
copy_to_device = tf.data.experimental.copy_to_device
prefetch_to_device = tf.data.experimental.prefetch_to_device


@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="holder", device_type="HOLDER", own_type="HOLDER", api=(1, 0), priority=-20,
        probe=f"{__name__}:probe", device=f"{__name__}:Holder", kernels=(),
    )  # fmt: skip


def probe():
    return Probe(devices=[DeviceAttributes(index=i) for i in range(2)])


class Held(np.ndarray):
    """Memory of a device."""


class Holder(BaseDevice):
    """A device that tells which threads brought what to its memory and from there."""

    namespace = xp
    dtypes = frozenset({dtypes.float32, dtypes.int64, dtypes.int32, dtypes.bool})

    def upload(self, array: Any) -> Any:
        ups.append((threading.current_thread().name, np.shape(array)))
        return np.array(array, order="C").view(Held)

    def download(self, buffer: Any) -> Any:
        downs.append(np.shape(buffer))
        return np.array(buffer, order="C", subok=False)


ups: list[tuple[str, tuple[int, ...]]] = []
downs: list[tuple[int, ...]] = []


@pytest.fixture(autouse=True)
def holder() -> Iterator[None]:
    plugin.register(sys.modules[__name__], NAME)
    ups.clear()
    downs.clear()
    yield
    plugin.unregister(NAME)


def rows() -> Any:
    return Dataset.from_tensor_slices(np.arange(20, dtype=np.float32).reshape(5, 4))


def next_on(device: str, dataset: Any) -> tuple[Any, Any]:
    with tf.device(device):
        iterator = tf.data.make_initializable_iterator(dataset)
        return iterator.initializer, iterator.get_next()


def all_of(session: Any, fetch: Any) -> list[Any]:
    found = []
    while True:
        try:
            found.append(session.run(fetch))
        except tf.errors.OutOfRangeError:
            return found


# ---------------------------------------------------------------- one device
def test_elements_lie_on_the_device_before_the_step_asks() -> None:
    begin, element = next_on(HOLDER, rows().apply(prefetch_to_device(HOLDER, 5)))
    with tf.device(HOLDER):
        total = tf.reduce_sum(element)
    with tf.Session() as session:
        session.run(begin)
        assert session.run(total) == 6.0
        found = all_of(session, total)
    assert found == [22.0, 38.0, 54.0, 70.0]
    # A row is copied once, by the thread that works ahead; a step copies nothing there.
    copied = [name for name, shape in ups if shape == (4,)]
    assert len(copied) == 5
    assert {name.partition("-")[0] for name in copied} == {"opdock_prefetch"}
    assert (4,) not in downs


def test_without_prefetching_the_step_copies_once() -> None:
    begin, element = next_on(HOLDER, rows().apply(copy_to_device(HOLDER)).take(2).repeat(2))
    with tf.Session() as session:
        for _ in range(2):
            session.run(begin)
            assert [v.tolist() for v in all_of(session, element[:1])] == [[0.0], [4.0]] * 2
    assert [shape for _, shape in ups].count((4,)) == 8


def test_what_works_on_elements_gets_them_on_the_host() -> None:
    dataset = rows().apply(copy_to_device(HOLDER))
    dataset = Dataset.zip((dataset.map(lambda x: x + 1), dataset)).batch(5)
    _, (more, same) = (
        dataset.make_initializable_iterator(),
        dataset.make_one_shot_iterator().get_next(),
    )
    with tf.Session() as session:
        a, b = session.run([more, same])
    np.testing.assert_array_equal(a, b + 1)
    assert type(b) is np.ndarray


def test_an_iterator_of_the_host_brings_elements_back() -> None:
    element = rows().apply(copy_to_device(HOLDER)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = session.run(element)
    assert type(found) is np.ndarray
    assert found.tolist() == [0, 1, 2, 3]


def test_an_iterator_of_another_device_gets_them_there() -> None:
    begin, element = next_on(OTHER, rows().apply(copy_to_device(HOLDER)))
    with tf.Session() as session:
        session.run(begin)
        assert [v[0] for v in all_of(session, element)] == [0, 4, 8, 12, 16]


def test_elements_with_strings_stay_on_the_host() -> None:
    named = rows().map(lambda x: {"x": x, "name": tf.as_string(x[0])})
    begin, element = next_on(HOLDER, named.apply(prefetch_to_device(HOLDER, 2)))
    with tf.Session() as session:
        session.run(begin)
        found = all_of(session, element)
    assert [f["name"] for f in found] == [
        b"0.000000",
        b"4.000000",
        b"8.000000",
        b"12.000000",
        b"16.000000",
    ]


def test_errors_come_in_the_place_of_elements() -> None:
    failing = rows().map(lambda x: tf.check_numerics(8.0 / (x - 4.0), "four"))
    begin, element = next_on(HOLDER, failing.apply(prefetch_to_device(HOLDER, 1)))
    with tf.Session() as session:
        session.run(begin)
        outcomes = []
        for _ in range(5):
            try:
                session.run(element)
                outcomes.append("element")
            except tf.errors.InvalidArgumentError as e:
                outcomes.append("four" if "four" in e.message else e.message)
    assert outcomes == ["element", "four", "element", "element", "element"]


def test_elements_that_the_host_makes_wait_for_a_reinitialized_iterator_no_more() -> None:
    begin, element = next_on(HOLDER, rows().repeat().apply(prefetch_to_device(HOLDER, 2)))
    with tf.Session() as session:
        for _ in range(3):
            session.run(begin)
            assert [session.run(element)[0] for _ in range(7)] == [0, 4, 8, 12, 16, 0, 4]


def test_where_it_stands_is_not_saved() -> None:
    with tf.device(HOLDER):
        iterator = tf.data.make_initializable_iterator(rows().apply(copy_to_device(HOLDER)))
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="is stateful"):
            session.run(
                saver.saver_def.save_tensor_name, {saver.saver_def.filename_tensor_name: "x"}
            )


def test_generators_under_a_device_stay_on_the_host() -> None:
    with tf.device(HOLDER):
        dataset = Dataset.from_generator(lambda: iter(range(3)), tf.int64, [])
        total = dataset.batch(3).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(total).tolist() == [0, 1, 2]
    assert [shape for _, shape in ups if shape == ()] == []


def test_names_of_devices_are_checked() -> None:
    with pytest.raises(ValueError, match="Unknown attribute"):
        copy_to_device("/no:such:thing:0")


# ---------------------------------------------------------------- several devices
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_devices_have_elements_in_turn(prefetch: int) -> None:
    dealt = MultiDeviceIterator(rows(), [HOLDER, OTHER], prefetch_buffer_size=prefetch)
    both, one = dealt.get_next(), dealt.get_next(OTHER)
    assert [t.device for t in both] == [HOLDER, OTHER]
    with tf.Session() as session:
        for _ in range(2):
            session.run(dealt.initializer)
            assert [v[0] for v in session.run(both)] == [0, 4]
            assert session.run(one)[0] == 12
            assert session.run(both[0])[0] == 8
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(both)


def test_the_last_elements_as_optionals() -> None:
    dealt = MultiDeviceIterator(Dataset.range(3), ["/cpu:0", HOLDER])
    found = [(o.has_value(), o.value_structure.dtype) for o in dealt.get_next_as_optional()]
    assert dealt.element_spec == tf.TensorSpec([], tf.int64)
    with tf.Session() as session:
        session.run(dealt.initializer)
        assert [session.run([has for has, _ in found]) for _ in range(2)] == [[1, 1], [1, 0]]


def test_one_device_may_run_ahead_as_far_as_there_is_room() -> None:
    dealt = MultiDeviceIterator(Dataset.range(100), ["/cpu:0", HOLDER], max_buffer_size=4)
    first, second = dealt.get_next("/cpu:0"), dealt.get_next(HOLDER)
    with tf.Session() as session:
        session.run(dealt.initializer)
        assert [session.run(first) for _ in range(5)] == [0, 2, 4, 6, 8]
        assert [session.run(second) for _ in range(5)] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_devices_have_elements_in_turn_where_operations_run_as_they_are_made(prefetch: int) -> None:
    with EagerGraph().as_default():
        dealt = MultiDeviceIterator(
            Dataset.range(5), ["/cpu:0", HOLDER, "/cpu:0"], prefetch_buffer_size=prefetch
        )
        assert dealt.initializer is None
        for _ in range(2):
            assert [int(v) for v in dealt.get_next()] == [0, 1, 2]
            assert int(dealt.get_next(HOLDER)) == 4
            optionals = dealt.get_next_as_optional()
            assert [bool(o.has_value()) for o in optionals] == [True, False, False]
            assert int(optionals[0].get_value()) == 3
            with pytest.raises(tf.errors.OutOfRangeError):
                dealt.get_next(HOLDER)
            dealt._eager_reset()


def test_a_session_begins_anew_by_the_initializer() -> None:
    with pytest.raises(ValueError, match="only supported in eager mode"):
        MultiDeviceIterator(Dataset.range(5), ["/cpu:0"])._eager_reset()


def test_a_shard_that_asks_too_early_or_too_much_is_told() -> None:
    from opdock.ops import data_multi_device as ops

    attrs = {"output_types": [tf.int64], "output_shapes": [()]}
    handle = ops.multi_device_iterator_op(devices=["/cpu:0"], shared_name="", container="", **attrs)
    shard, walk = tf.placeholder(tf.int32, []), tf.placeholder(tf.int64, [])
    element = ops.multi_device_iterator_get_next_from_shard_op(handle, shard, walk, **attrs)
    begin = ops.multi_device_iterator_init_op(
        Dataset.range(3)._variant_tensor, handle, tf.constant(1, tf.int64)
    )
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"):
            session.run(element, {shard: 0, walk: 1})
        number = session.run(begin)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shard 1 is not in \[0, 1\)"):
            session.run(element, {shard: 1, walk: number})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid incarnation id"):
            session.run(element, {shard: 0, walk: number + 1})
        assert session.run(element, {shard: 0, walk: number}) == [0]
