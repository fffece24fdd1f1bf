"""Files that are written beside their place: none is left, whenever an interrupt comes."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

from opdock.io import files
from opdock.io.files import Temporary, atomic_write


def test_what_took_its_place_stays(tmp_path: Path) -> None:
    temporary = Temporary(str(tmp_path / "file"))
    temporary.file.write(b"whole")
    temporary.install()
    del temporary
    gc.collect()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"whole"}


@pytest.mark.parametrize("where", ["_open_locked", "tf_errors"])
def test_an_interrupt_while_the_file_is_made(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = getattr(files, where)

    def interrupted(*args: Any) -> Any:
        made(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(files, where, interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_write(str(tmp_path / "file")):
        pytest.fail("nothing could be written")
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_one_that_nobody_installed_or_discarded(tmp_path: Path) -> None:
    Temporary(str(tmp_path / "file"))
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_leaves_it_alone(tmp_path: Path) -> None:
    temporary = Temporary(str(tmp_path / "file"))
    child = os.fork()
    if not child:
        temporary.discard()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [p.name for p in tmp_path.iterdir()] == [Path(temporary.name).name]
    temporary.discard()
    assert not list(tmp_path.iterdir())


def test_what_is_written_goes_to_the_disk_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[int, int]] = []
    monkeypatch.setattr(
        files, "_begin_to_write", lambda handle, start, size, how: begun.append((start, size))
    )
    step = files._BEGUN_AT // 4
    with files.atomic_write(str(tmp_path / "f")) as file:
        for number in range(9):
            file.write(bytes([number]) * step)
    assert begun == [(0, 4 * step), (4 * step, 4 * step)]
    assert (tmp_path / "f").read_bytes() == b"".join(bytes([n]) * step for n in range(9))
