"""Saves that are killed at any call to the file system: a complete checkpoint is always there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opdock.io import files
from opdock.io.checkpoint_v2 import BundleReader, BundleWriter, merge_bundles

CALLS = ("replace", "link", "fsync", "unlink", "mkdir", "rmdir")


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # The disk outlives the processes that are killed here; only the order of calls matters.
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Killed(BaseException):
    """Stands for SIGKILL: no handler may do anything to the files after it."""


class Switch:
    """Counts the calls to the file system and lets none happen from call `last` on."""

    def __init__(self, last: int | None) -> None:
        self.calls = 0
        self.last = last

    def __call__(self) -> None:
        self.calls += 1
        if self.dead:
            raise Killed

    @property
    def dead(self) -> bool:
        """Whether the process has been killed."""
        return self.last is not None and self.calls > self.last


class File:
    """A file whose writes count; the write at which the kill comes gets halfway."""

    def __init__(self, inner: Any, switch: Switch) -> None:
        self.inner, self.switch = inner, switch

    def write(self, data: Any) -> None:
        try:
            self.switch()
        except Killed:
            self.inner.write(bytes(data)[: len(data) // 2])
            self.inner.flush()
            raise
        self.inner.write(data)
        self.inner.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def killed_after(calls: int | None) -> Iterator[Switch]:
    switch = Switch(calls)

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            switch()
            return do(*args, **kwargs)

        return call

    made, remove = files._made, files._remove

    def opened(name: str) -> Any:
        switch()
        return File(made(name), switch)

    def removed(name: str, held: list[Any], owner: int) -> None:
        for file in held:
            file.inner.close()
        with suppress(Killed):  # a process that has been killed finalizes nothing
            if not switch.dead:
                remove(name, held, owner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_made", opened)
        patch.setattr(files, "_remove", removed)
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        yield switch


def save(prefix: str, value: float, shards: int) -> None:
    """Writes a checkpoint as SaveV2 does, or as a sharded save does."""
    parts = [prefix] if shards == 1 else [f"{prefix}_temp_{'0' * 32}/p{i}" for i in range(shards)]
    for i, part in enumerate(parts):
        with BundleWriter(part) as writer:
            for name in ("a", "b"):
                writer.add(f"{name}{i}", np.full(3, value))
    if shards > 1:
        merge_bundles(parts, prefix)


def read(prefix: str) -> float:
    """The value in the checkpoint; it fails if there are several, or if it cannot be read."""
    with BundleReader(prefix) as reader:
        (value,) = {float(v) for name in reader.names() for v in reader.get(name)}
    return value


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (1, 2), (2, 1)])
@pytest.mark.parametrize("links", [True, False])
def test_one_of_both_is_whole(tmp_path: Path, before: int, after: int, links: bool) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no links here")

    usual = {"m.index"} | {f"m.data-{i:05d}-of-{after:05d}" for i in range(after)}
    seen = []
    for calls in range(1000):
        folder = tmp_path / str(calls)
        folder.mkdir()
        prefix = str(folder / "m")
        save(prefix, 1.0, before)
        with pytest.MonkeyPatch.context() as patch:
            if not links:
                patch.setattr(os, "link", no_link)
            try:
                with killed_after(calls):
                    save(prefix, 2.0, after)
                done = True
            except Killed:
                done = False
        seen.append(read(prefix))
        # The next save is not held up by what is left, and leaves nothing of it.
        save(prefix, 3.0, after)
        assert read(prefix) == 3.0
        left = set(os.listdir(folder)) - {f"m_temp_{'0' * 32}"}
        assert left == usual
        shutil.rmtree(folder)
        if done:
            break
    assert done
    assert seen == sorted(seen)
    assert {1.0, 2.0} == set(seen)


def test_a_first_save_is_whole_or_not_there(tmp_path: Path) -> None:
    found = []
    for calls in range(100):
        folder = tmp_path / str(calls)
        folder.mkdir()
        prefix = str(folder / "m")
        try:
            with killed_after(calls):
                save(prefix, 1.0, 1)
            done = True
        except Killed:
            done = False
        found.append(os.path.exists(f"{prefix}.index"))
        assert not found[-1] or read(prefix) == 1.0
        if done:
            break
    assert done
    assert found == sorted(found)


def test_what_is_being_written_is_not_swept(tmp_path: Path) -> None:
    abandoned = tmp_path / f"old.index.tempstate{'a' * 32}"
    abandoned.write_bytes(b"")
    foreign = tmp_path / "m.index.tempstate123"
    foreign.write_bytes(b"")
    with BundleWriter(str(tmp_path / "slow")) as slow:
        slow.add("x", np.ones(2))
        save(str(tmp_path / "quick"), 1.0, 1)
        assert not abandoned.exists()
    assert read(str(tmp_path / "slow")) == 1.0
    assert foreign.exists(), "another program's files are its own"


def test_parts_of_a_save_that_was_killed_long_ago_go(tmp_path: Path) -> None:
    for name in ("old", "new"):
        folder = tmp_path / f"m_temp_{name[0].encode().hex() * 16}"
        folder.mkdir()
        (folder / "part.index").write_bytes(b"")
    old, new = sorted(tmp_path.iterdir(), key=lambda p: "6f" not in p.name)
    os.utime(old, (0, 0))
    save(str(tmp_path / "m"), 1.0, 1)
    assert not old.exists()
    assert new.exists()


KILLED = Path(__file__).parents[3] / "benchmarks" / "kill_saves.py"


def test_real_kills(tmp_path: Path) -> None:
    command = [sys.executable, str(KILLED), "--kills", "3", "--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills" in done.stdout


def test_saves_of_several_threads_to_one_prefix_take_turns(tmp_path: Path) -> None:
    prefix, failures = str(tmp_path / "m"), []

    def save(value: int) -> None:
        try:
            for _ in range(15):
                with BundleWriter(prefix) as writer:
                    writer.add("v", np.full(50, value))
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=save, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with BundleReader(prefix) as reader:
        assert len(set(reader.get("v").tolist())) == 1
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


SAVES = """
import sys
import numpy as np
from opdock.io.checkpoint_v2 import BundleWriter
for n in range(100):
    with BundleWriter(sys.argv[1]) as writer:
        writer.add("v", np.full(1000, float(sys.argv[2]) + n))
"""


def test_saves_of_several_processes_to_one_prefix_take_turns(tmp_path: Path) -> None:
    """One removed the data that the other was about to rename, or put its own beside the other's
    index."""
    lines = [[sys.executable, "-c", SAVES, str(tmp_path / "m"), who] for who in ("0", "1000")]
    savers = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for line in lines]
    said = [saver.communicate()[1] for saver in savers]
    assert [saver.returncode for saver in savers] == [0, 0], said
    with BundleReader(str(tmp_path / "m")) as reader:
        value = reader.get("v")
    assert (value == value[0]).all() and value[0] % 1000 == 99
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


def test_a_turn_that_does_not_end_is_not_waited_for_without_end(tmp_path: Path) -> None:
    entered = []
    with files.directory_turn(str(tmp_path), 0.0):
        with files.directory_turn(str(tmp_path), 0.01):
            entered.append("while the other has it")
        with files.directory_turn(str(tmp_path / "missing"), 0.0):
            entered.append("without a directory")
    assert len(entered) == 2
