from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def elements(dataset: Any, limit: int = 1000) -> list[Any]:
    """All elements, by an initializable iterator in a session of its own."""
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer)
        try:
            for _ in range(limit):
                found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            pass
    return found


@pytest.fixture
def walk() -> Callable[..., list[Any]]:
    return elements


@pytest.fixture
def resumed() -> Callable[..., None]:
    """Checks that an iterator saved anywhere goes on as one that was not."""

    def check(make: Callable[[], Any], tmp_path: Any, stops: tuple[int, ...]) -> None:
        with tf.Graph().as_default():
            whole = [_plain(e) for e in elements(make())]
        for stop in stops:
            with tf.Graph().as_default():
                iterator = make().make_initializable_iterator()
                element = iterator.get_next()
                saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
                path = str(tmp_path / f"at{stop}")
                with tf.Session() as session:
                    session.run(iterator.initializer)
                    for _ in range(stop):
                        session.run(element)
                    saver.save(session, path, write_meta_graph=False)
                rest = []
                with tf.Session() as session:
                    session.run(iterator.initializer)
                    saver.restore(session, path)
                    with pytest.raises(tf.errors.OutOfRangeError):
                        while True:
                            rest.append(_plain(session.run(element)))
            assert rest == whole[stop:], f"saved after {stop} elements"

    return check


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in value)
    return value.tolist() if hasattr(value, "tolist") else value
