"""A disk that is full, a quota that is used up, a disk that cannot be written to.

The error has a type and names the file, the last checkpoint is kept, and nothing of the next one is
left.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

SIZE = 1 << 16  # elements of a variable, 256 KiB of which the disk holds one and a half


class Disk:
    """A file system of 400 KiB, where this process may mount one.

    Attributes:
        path: where it is.
        full: what the system says when there is no room.
    """

    full = "No space left on device"

    def __init__(self, path: Path) -> None:
        self.path = path / "disk"
        self.path.mkdir()
        self.mount()

    def mount(self) -> None:
        """Makes it, and puts it where it is."""
        run("mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(self.path))

    def settle(self) -> None:
        """Waits until what was removed takes no room any more."""

    def lock(self) -> None:
        """Nothing can be written any more."""
        run("mount", "-o", "remount,ro", str(self.path))

    def close(self) -> None:
        run("umount", "--lazy", str(self.path))


class Quota(Disk):
    """A larger one, where the quota is 400 KiB: that of Btrfs holds for root as well."""

    full = "Disk quota exceeded"

    def mount(self) -> None:
        image = self.path.with_name("image")
        with image.open("wb") as file:
            file.truncate(1 << 27)  # none of which it has before it is written
        run("mkfs.btrfs", "--quiet", "--mixed", str(image))
        run("mount", "-o", "loop", str(image), str(self.path))
        try:
            run("btrfs", "quota", "enable", str(self.path))
            run("btrfs", "qgroup", "limit", "400k", str(self.path))
        except BaseException:
            self.close()
            raise

    def settle(self) -> None:
        run("btrfs", "filesystem", "sync", str(self.path))


def run(*command: str) -> None:
    """A command of the system.

    Raises:
        OSError: there is no such command.
        RuntimeError: it failed; says why.
    """
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@pytest.fixture(params=[Disk, Quota])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disk]:
    try:
        made = request.param(tmp_path)
    except (OSError, RuntimeError) as e:
        pytest.skip(f"such a file system cannot be mounted here (tools/setup_disks.sh): {e}")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def model() -> tuple[Any, Any]:
    """A large variable, and the operation that adds one to it and to the global step."""
    step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [SIZE], initializer=tf.zeros_initializer())
    return weights, tf.group(tf.assign_add(weights, tf.ones([SIZE])), tf.assign_add(step, 1))


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if "tfevents" not in p.name}


def saved(folder: Path) -> np.ndarray:
    return tf.train.load_variable(str(folder), "weights")


@pytest.mark.parametrize("sharded", [False, True])
def test_a_saver_on_a_full_disk(disk: Disk, sharded: bool) -> None:
    _, train = model()
    saver = tf.train.Saver(sharded=sharded)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, str(disk.path / "model"), 1, write_meta_graph=False)
        before = files(disk.path)
        session.run(train)
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"model-2.*{disk.full}"):
            saver.save(session, str(disk.path / "model"), 2, write_meta_graph=False)
        assert files(disk.path) == before
        assert not saved(disk.path).any()
        assert saver.last_checkpoints == [str(disk.path / "model-1")]
        # When there is room again, the same session goes on.
        (disk.path / "model-1.data-00000-of-00001").unlink()
        disk.settle()
        saver.save(session, str(disk.path / "model"), 2, write_meta_graph=False)
    assert saved(disk.path).all()


def test_a_monitored_session_on_a_full_disk(disk: Disk) -> None:
    _, train = model()
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"model.ckpt-.*{disk.full}"):
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(disk.path), save_checkpoint_steps=2, save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:  # fmt: skip
            for _ in range(10):
                session.run(train)
    assert not saved(disk.path).any()
    assert not [name for name in files(disk.path) if "temp" in name]


def test_a_limit_on_the_size_of_files_ends_training_with_an_error(tmp_path: Path) -> None:
    _, train = model()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, limits[1]))
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="File too large"):
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, save_summaries_steps=None,
                log_step_count_steps=None,
            ) as session:  # fmt: skip
                session.run(train)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [name for name in files(tmp_path) if "temp" in name]


def test_a_disk_that_cannot_be_written_to(disk: Disk) -> None:
    model()
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, str(disk.path / "model"), 1, write_meta_graph=False)
        before = files(disk.path)
        disk.lock()
        with pytest.raises(tf.errors.PermissionDeniedError, match="Read-only file system"):
            saver.save(session, str(disk.path / "model"), 2, write_meta_graph=False)
    assert files(disk.path) == before
    assert not saved(disk.path).any()
    with pytest.raises(tf.errors.PermissionDeniedError, match="Read-only file system"):
        tf.summary.FileWriter(str(disk.path / "events"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_events_on_a_full_disk(disk: Disk) -> None:
    writer = tf.summary.FileWriter(str(disk.path))
    summary = tf.Summary()
    summary.value.add(tag="x" * (1 << 19), simple_value=1)
    writer.add_summary(summary, 1)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"tfevents.*{disk.full}"):
        writer.flush()
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"tfevents.*{disk.full}"):
        writer.add_summary(summary, 2)
    writer.close()


def cached(path: Path) -> Any:
    """The next of 3,000 elements of 400 bytes that a file keeps."""
    dataset = tf.data.Dataset.range(3000).map(lambda i: tf.fill([100], tf.cast(i, tf.int32)))
    return tf.data.make_one_shot_iterator(dataset.cache(str(path))).get_next()


def test_a_cache_on_a_full_disk(disk: Disk) -> None:
    element = cached(disk.path / "cache")
    with tf.Session() as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"cache.*{disk.full}"):
            for _ in range(3000):
                session.run(element)
        # Elements after a gap are not handed out, and nothing that would stop the next try is left.
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"cache.*{disk.full}"):
            session.run(element)
    assert not files(disk.path)
    with tf.Session() as session:
        session.run(cached(disk.path / "cache"))
    assert not files(disk.path)


def test_records_on_a_full_disk(disk: Disk) -> None:
    path = disk.path / "records"
    path.write_bytes(b"as it was")
    records = tf.data.Dataset.from_tensors(tf.fill([1000], "x" * 100)).unbatch().repeat(9)
    write = tf.data.experimental.TFRecordWriter(str(path)).write(records)
    with tf.Session() as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"records.*{disk.full}"):
            session.run(write)
    assert files(disk.path) == {"records": b"as it was"}
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"open.*{disk.full}"):
        with tf.python_io.TFRecordWriter(str(disk.path / "open")) as writer:
            for _ in range(9):
                writer.write(b"x" * 100_000)


def test_a_saved_model_on_a_full_disk(disk: Disk) -> None:
    weights, _ = model()
    place = tf.placeholder(tf.float32, [], "x")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def export(name: str) -> None:
            folder = str(disk.path / name)
            tf.saved_model.simple_save(session, folder, {"x": place}, {"y": weights + place})

        export("1")
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"disk/2/.*{disk.full}"):
            export("2")
    left = [p for p in (disk.path / "2").rglob("*") if p.is_file()]
    assert not [p for p in left if p.name == "saved_model.pb"]  # whoever serves models skips it
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(disk.path / "1"))


def test_an_estimator_on_a_full_disk(disk: Disk) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weights, train = model()
        return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(weights), train_op=train)

    config = tf.estimator.RunConfig(save_checkpoints_steps=2, save_summary_steps=1000)
    estimator = tf.estimator.Estimator(model_fn, str(disk.path), config)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"model.ckpt-.*{disk.full}"):
        estimator.train(lambda: tf.data.Dataset.from_tensors(0.0).repeat(), steps=10)
    assert not saved(disk.path).any()
    assert not [name for name in files(disk.path) if "temp" in name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    model()
    tmp_path.chmod(0o555)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.PermissionDeniedError, match="Permission denied"):
            tf.train.Saver().save(session, str(tmp_path / "model"))
    assert not files(tmp_path)
