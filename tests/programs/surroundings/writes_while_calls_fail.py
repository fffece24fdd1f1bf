"""Writes files of each kind while one call of the system after the other fails; says what is wrong.

    LD_PRELOAD=LIBRARY python writes_while_calls_fail.py LIBRARY KIND

Whatever fails is one of TensorFlow's errors, what was there before is whole, nothing half-written
lies about, and the next attempt works.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf

CALLS = ("create", "mkdir", "write", "fsync", "rename", "close")
EVER = 1 << 30
FAULTS = (
    (errno.ENOSPC, 1), (errno.EDQUOT, EVER), (errno.EIO, 1), (errno.EIO, EVER), (errno.EROFS, EVER),
)  # fmt: skip
"""Error numbers, and how many calls in a row give them."""
SHORT = ((0, 1), (0, EVER), (errno.EINTR, 1))
"""What is no fault of a write: it took less, or was interrupted."""
MOST = 25


def numbers() -> list[int]:
    return list(range(20))


class Saving:
    """Checkpoints, of which the last two are kept."""

    def __init__(self, folder: str, sharded: bool = False, same: bool = False) -> None:
        self.folder, self.same = folder, same
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.value = tf.get_variable("v", initializer=np.arange(2000.0))
            self.more = self.value.assign_add(tf.ones_like(self.value))
            self.saver = tf.train.Saver(max_to_keep=2, sharded=sharded)
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())
        self.step = 0
        self.act()
        self.act()
        self.kept = self.read()

    def act(self) -> None:
        self.step += 1
        self.session.run(self.more)
        number = None if self.same else self.step
        with self.graph.as_default():
            self.saver.save(self.session, f"{self.folder}/m", number)

    def read(self) -> dict[str, float]:
        """The first value of each checkpoint that the state file lists."""
        state = tf.train.get_checkpoint_state(self.folder)
        found = {}
        for path in state.all_model_checkpoint_paths:
            value = tf.train.load_variable(path, "v")
            np.testing.assert_array_equal(value, np.arange(2000) + value[0])
            found[path] = float(value[0])
        return found

    def check(self, failed: bool) -> None:
        latest = max(self.read().values())
        assert latest == self.step or (failed and latest == self.step - 1), latest
        self.act()
        assert max(self.read().values()) == self.step
        self.session.close()

    def litter(self) -> list[str]:
        """What is temporary, and data that no index lists."""
        names = os.listdir(self.folder)
        listed = {n.removesuffix(".index") for n in names if n.endswith(".index")}
        data = [n for n in names if ".data-" in n and n.partition(".data-")[0] not in listed]
        return [n for n in names if "temp" in n] + data


class Exporting:
    """A SavedModel."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with tf.Graph().as_default():
            self.value = tf.get_variable("v", initializer=np.arange(2000.0))
            self.session = tf.Session()
            self.session.run(tf.global_variables_initializer())

    def act(self) -> None:
        with self.session.graph.as_default():
            tf.saved_model.simple_save(
                self.session, f"{self.folder}/e", {"x": self.value}, {"y": self.value}
            )

    def check(self, failed: bool) -> None:
        if failed:
            shutil.rmtree(f"{self.folder}/e", ignore_errors=True)
            self.act()
        with tf.Graph().as_default(), tf.Session() as session:
            tf.saved_model.loader.load(session, ["serve"], f"{self.folder}/e")
        self.session.close()

    def litter(self) -> list[str]:
        return [p.name for p in Path(self.folder).rglob("*") if "temp" in p.name]


class Caching:
    """A dataset's cache."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def act(self) -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            cached = tf.data.Dataset.from_tensor_slices(numbers()).cache(f"{self.folder}/c")
            following = tf.data.make_one_shot_iterator(cached).get_next()
            assert [int(session.run(following)) for _ in numbers()] == numbers()
            try:
                session.run(following)
            except tf.errors.OutOfRangeError:
                return
            raise AssertionError("the cache has no end")

    def check(self, failed: bool) -> None:
        self.act()
        self.act()

    def litter(self) -> list[str]:
        return [n for n in os.listdir(self.folder) if n != "c.index"]


class Recording:
    """A packed TFRecord file, and an event file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def act(self) -> None:
        options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
        with tf.python_io.TFRecordWriter(f"{self.folder}/r", options) as records:
            for n in numbers():
                records.write(np.random.RandomState(n).bytes(5000))
        with tf.summary.FileWriter(f"{self.folder}/events") as events:
            for n in numbers():
                events.add_summary(tf.Summary(value=[{"tag": "x", "simple_value": n}]), n)

    def check(self, failed: bool) -> None:
        if failed:
            shutil.rmtree(f"{self.folder}/events", ignore_errors=True)
            self.act()
        options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
        read = list(tf.python_io.tf_record_iterator(f"{self.folder}/r", options))
        assert len(read) == len(numbers())
        (name,) = os.listdir(f"{self.folder}/events")
        assert len(list(tf.train.summary_iterator(f"{self.folder}/events/{name}"))) == 21

    def litter(self) -> list[str]:
        return []


KINDS: dict[str, Callable[[str], Any]] = {
    "checkpoint": Saving,
    "sharded checkpoint": lambda folder: Saving(folder, sharded=True),
    "checkpoint of one name": lambda folder: Saving(folder, same=True),
    "export": Exporting,
    "cache": Caching,
    "records": Recording,
}


def typed(error: BaseException) -> bool:
    """Whether an error says in TensorFlow's way what the system said."""
    if not isinstance(error, tf.errors.OpError):
        return False
    kinds: dict[str, type[tf.errors.OpError]] = {
        "No space left on device": tf.errors.ResourceExhaustedError,
        "Disk quota exceeded": tf.errors.ResourceExhaustedError,
        "Input/output error": tf.errors.UnknownError,
        "Read-only file system": tf.errors.PermissionDeniedError,
    }
    return any(words in error.message and type(error) is kind for words, kind in kinds.items())


@contextmanager
def failing(
    library: Any, folder: str, call: str, at: int, fault: tuple[int, int]
) -> Iterator[None]:
    number, often = fault
    library.failing_calls(folder.encode(), call.encode(), at, min(at + often - 1, EVER), number)
    try:
        yield
        gc.collect()
    finally:
        library.failing_calls(b"", b"", 0, 0, 0)


def trial(
    library: Any, make: Callable[[str], Any], call: str, at: int, fault: tuple[int, int]
) -> str:
    """What is wrong when calls from the `at`-th on fail; "over" where there are not so many."""
    with tempfile.TemporaryDirectory() as folder:
        kind = make(folder)
        error: BaseException | None = None
        with failing(library, folder, call, at, fault):
            try:
                kind.act()
            except Exception as e:
                error = e
            made = library.calls_made()
        wrong = ""
        if error is not None and (fault in SHORT or not typed(error)):
            wrong = f"{type(error).__name__}: {str(error)[:200]}"
        if litter := kind.litter():
            wrong = wrong or f"{litter} are left"
        try:
            kind.check(error is not None)
        except Exception as e:
            wrong = wrong or f"afterwards, {type(e).__name__}: {str(e)[:200]}"
        return wrong or ("over" if made < at else "")


def main() -> None:
    """Tries all calls of a kind of file, and prints the trials and what is wrong."""
    library, name = ctypes.CDLL(sys.argv[1]), sys.argv[2]
    tf.logging.set_verbosity(tf.logging.FATAL)
    trials, wrong = 0, []
    for call in CALLS:
        faults = [*FAULTS, *(SHORT if call == "write" else ())]
        if call == "close":  # always, it would fail for what was only read, and for folders
            faults = [f for f in faults if f[1] == 1]
        for fault in faults:
            for at in range(1, MOST):
                found = trial(library, KINDS[name], call, at, fault)
                trials += 1
                if found == "over":
                    break
                if found:
                    wrong.append(f"{call} {at} fails with {fault}: {found}")
    json.dump({"trials": trials, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
