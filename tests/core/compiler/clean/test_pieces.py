"""A restore of many tensors reads one at a time, and none before all are known to be readable."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

SIZE = 1 << 18
BYTES = 4 * SIZE
COUNT = 8


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """A checkpoint of `COUNT` vectors, each full of its number."""
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        for i in range(COUNT):
            tf.Variable(np.full(SIZE, i, np.float32), name=f"v{i}", use_resource=bool(i % 2))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    return path


def model() -> tuple[list[Any], Any]:
    """Variables for it, whose numbers are others, and a Saver."""
    variables = [
        tf.get_variable(
            f"v{i}", [SIZE], initializer=tf.random_uniform_initializer(-2, -1),
            use_resource=bool(i % 2),
        )
        for i in range(COUNT)
    ]  # fmt: skip
    return variables, tf.train.Saver()


@pytest.mark.usefixtures("nothing_beside")
@pytest.mark.parametrize("sequentially", [False, True])
def test_a_restore_holds_one_tensor(prefix: str, sequentially: bool) -> None:
    variables, _ = model()
    saver = tf.train.Saver(restore_sequentially=sequentially)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.restore(session, prefix)  # everything is loaded and compiled now
        for variable in variables:
            variable.load(np.full(SIZE, -1, np.float32), session)
        tracemalloc.start()
        try:
            saver.restore(session, prefix)
            _, highest = tracemalloc.get_traced_memory()
            # What the old values had was not traced: all the new ones and a tensor or two.
            assert highest < (COUNT + 2) * BYTES
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            saver.restore(session, prefix)
            _, highest = tracemalloc.get_traced_memory()
            assert highest - before < 2.5 * BYTES
        finally:
            tracemalloc.stop()
        for i, value in enumerate(session.run(variables)):
            np.testing.assert_array_equal(value, i)


def test_a_damaged_tensor_changes_no_variable(prefix: str) -> None:
    data = Path(f"{prefix}.data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[-7] ^= 1  # in the last tensor
    data.write_bytes(content)
    variables, saver = model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.DataLossError, match="Checksum does not match.*key v7"):
            saver.restore(session, prefix)
        assert all((value < 0).all() for value in session.run(variables))


def restored(prefix: str, names: list[str]) -> list[Any]:
    types = [tf.float32] * len(names)
    return list(tf.raw_ops.RestoreV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=types,
    ))  # fmt: skip


def test_what_is_fetched_and_what_is_not(prefix: str) -> None:
    values = restored(prefix, ["v2", "v5", "v7"])
    with tf.Session() as session:
        doubled, last = session.run([values[1] * 2, values[2]])
        assert (doubled[0], last[0]) == (10, 7)
        rows = session.explain([values[1] * 2, values[2]]).rows
    assert [r.node for r in rows if r.op == "_ReadCheckpoint"] == ["RestoreV2/1", "RestoreV2/2"]


def test_who_waits_for_a_restore_waits_for_all_of_it(prefix: str) -> None:
    values = restored(prefix, ["v2", "v5"])
    with tf.control_dependencies([values[0].op]):
        after = tf.placeholder_with_default(1.0, []) + 1
    fetches = [after, values[1]]
    with tf.Session() as session:
        assert session.run(fetches)[0] == 2
        assert "RestoreV2" in [r.op for r in session.explain(fetches).rows if r.device]


def test_a_checkpoint_that_goes_meanwhile_is_read_to_its_end(prefix: str) -> None:
    def remove() -> np.ndarray:
        for path in Path(prefix).parent.glob("model.*"):
            path.unlink()
        return np.float32(1)

    first, second = restored(prefix, ["v2", "v5"])
    with tf.control_dependencies([first + 1]):
        gone = tf.py_func(remove, [], tf.float32)
    with tf.Session() as session:
        assert session.run([first, gone * second])[1][0] == 5


# ---------------------------------------------------------------- saves
def saves(prefix: str, tensors: list[Any], specs: list[str] | None = None) -> Any:
    """A save of tensors under their numbers."""
    return tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=[f"t{i}" for i in range(len(tensors))],
        shape_and_slices=specs or [""] * len(tensors), tensors=tensors,
    )  # fmt: skip


def test_a_save_takes_one_tensor_after_the_other(tmp_path: Path) -> None:
    save = saves(str(tmp_path / "m"), [tf.constant([1.0]), tf.constant([b"a"]), tf.constant(3)])
    with tf.Session() as session:
        rows = session.explain(save).rows
        assert [r.op for r in rows if r.device and r.op.endswith("Checkpoint")] == [
            "_CreateCheckpoint", *3 * ["_WriteCheckpoint"], "_FinishCheckpoint",
        ]  # fmt: skip
        session.run(save)
    reader = tf.train.NewCheckpointReader(str(tmp_path / "m"))
    assert [reader.get_tensor(f"t{i}") for i in range(3)] == [[1.0], [b"a"], 3]


def test_who_waits_for_a_save_waits_for_its_end(tmp_path: Path) -> None:
    prefix = str(tmp_path / "m")
    with tf.control_dependencies([saves(prefix, [tf.constant(1.0), tf.constant(2.0)])]):
        content = tf.read_file(f"{prefix}.index")
    with tf.Session() as session:
        assert session.run(content) == Path(f"{prefix}.index").read_bytes()


def failing(value: Any) -> Any:
    def fail(x: Any) -> Any:
        raise ValueError("not this one")

    return tf.py_func(fail, [value], tf.float32)


@pytest.mark.parametrize(
    ("tensors", "specs", "error"),
    [
        (lambda: [1.0, failing(2.0)], None, tf.errors.InvalidArgumentError),
        (lambda: [[1.0], [2.0]], ["", "4 0,2"], tf.errors.InvalidArgumentError),
    ],
)
def test_of_a_save_that_fails_nothing_remains(
    tmp_path: Path, tensors: Any, specs: Any, error: Any
) -> None:
    prefix = str(tmp_path / "m")
    with tf.Session() as session:
        session.run(saves(prefix, [tf.constant(7.0), tf.constant(8.0)]))
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        save = saves(prefix, [tf.convert_to_tensor(t) for t in tensors()], specs)
        with pytest.raises(error):
            session.run(save)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_save_of_a_value_that_is_changed_later_has_the_value_of_its_moment(
    tmp_path: Path,
) -> None:
    prefix = str(tmp_path / "m")
    a, b = (tf.get_variable(f"v{i}", initializer=[1.0], use_resource=i == 0) for i in range(2))
    with tf.control_dependencies([saves(prefix, [a.read_value(), b.read_value()])]):
        changed = [v.assign([5.0]) for v in (a, b)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(changed)
    reader = tf.train.NewCheckpointReader(prefix)
    assert [reader.get_tensor(f"t{i}") for i in range(2)] == [[1.0], [1.0]]
