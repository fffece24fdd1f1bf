"""Profiles of the steps of all sessions while a `ProfileContext` lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.io import protos
from opdock.profiler.profile_context import ProfileContext
from opdock.runtime.session import BaseSession

BUILDER = tf.profiler.ProfileOptionBuilder
QUIET = BUILDER().with_empty_output().build()


@pytest.fixture
def product() -> Iterator[Any]:
    with tf.Graph().as_default():
        yield tf.matmul(tf.random_normal([3, 4]), tf.ones([4, 5]), name="product")


def run(fetches: Any, times: int) -> None:
    with tf.Session() as session:
        for _ in range(times):
            session.run(fetches)


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_steps_are_traced_profiled_and_kept(product: Any, tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    before = BaseSession.run
    with ProfileContext(str(folder), trace_steps=[2, 4], dump_steps=[5]) as context:
        context.add_auto_profiling("op", QUIET, [3, 5])
        run(product, 7)
    assert BaseSession.run is before
    assert sorted(context.get_profiles("op")) == [3, 5]
    assert kept(folder) == ["profile_5"]
    profile = protos.ProfileProto.FromString((folder / "profile_5").read_bytes())
    assert list(profile.steps) == [2, 3, 4, 5]
    (node,) = (node for node in profile.nodes.values() if node.name == "product")
    assert all(node.execs[step].run_count == 1 for step in profile.steps)
    with pytest.raises(ValueError, match="scope"):
        context.get_profiles("scope")


def test_the_first_run_of_fetches_after_ten_steps_is_traced(product: Any, tmp_path: Path) -> None:
    with ProfileContext(str(tmp_path), debug=True):
        run(product, 11)
        assert kept(tmp_path) == []
        run({"a": product}, 1)
        run(product, 1)
        run([product.op], 1)
    assert {"run_meta_11", "run_meta_13"} <= set(kept(tmp_path))


def test_the_next_step_may_be_asked_for(product: Any, tmp_path: Path) -> None:
    with ProfileContext(str(tmp_path), trace_steps=[], dump_steps=[]) as context:
        context.trace_next_step()
        context.dump_next_step()
        run(product, 2)
        assert context.profiler is not None
        found = context.profiler.profile_operations(QUIET)
    assert found.total_exec_micros > 0
    assert kept(tmp_path) == ["profile_0"]


def test_what_the_user_asks_of_a_step_stays(product: Any, tmp_path: Path) -> None:
    options, record = tf.RunOptions(timeout_in_ms=60000), tf.RunMetadata()
    with ProfileContext(str(tmp_path), trace_steps=[0]), tf.Session() as session:
        session.run(product, options=options, run_metadata=record)
    assert options.trace_level == tf.RunOptions.NO_TRACE
    assert record.HasField("step_stats")


def test_a_context_that_is_not_enabled_does_nothing(product: Any, tmp_path: Path) -> None:
    before = BaseSession.run
    with ProfileContext("", enabled=False) as context:
        assert BaseSession.run is before
        context.add_auto_profiling("op", QUIET, [0])
        context.trace_next_step()
        assert context.profiler is None


def test_one_at_a_time_and_not_of_too_much(tmp_path: Path) -> None:
    with ProfileContext(str(tmp_path)) as context:
        with pytest.raises(ValueError, match="tree"):
            context.add_auto_profiling("tree", QUIET, [1])
        with pytest.raises(tf.errors.InternalError, match="active"), ProfileContext(str(tmp_path)):
            pass
    with ProfileContext(str(tmp_path)):
        pass
    with pytest.raises(ValueError, match="directory"):
        ProfileContext("")
    with pytest.raises(ValueError, match="100"):
        ProfileContext(str(tmp_path), trace_steps=range(101))
