"""What is kept on disk: what another user could have written, or led to, is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opdock import kept

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which holds one file."""
    monkeypatch.setenv("OPDOCK_CACHE", str(tmp_path))
    kept.write("things", KEY, b"code")
    assert kept.read("things", KEY) == b"code"
    return tmp_path / "things"


def link_to(path: Path, to: str) -> None:
    path.rename(path.with_name(to))
    path.symlink_to(to)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder, file: folder.chmod(0o770),
        lambda folder, file: folder.chmod(0o702),
        lambda folder, file: file.chmod(0o620),
        lambda folder, file: file.chmod(0o602),
        lambda folder, file: link_to(folder, "elsewhere"),
        lambda folder, file: link_to(file, "elsewhere"),
        lambda folder, file: (file.unlink(), file.mkdir()),
        lambda folder, file: file.rename(folder / OTHER),
    ],
)
def test_what_others_may_write_is_not_read(
    folder: Path, change: Callable[[Path, Path], object]
) -> None:
    change(folder, folder / KEY)
    assert kept.read("things", KEY) is None
    assert kept.read("things", OTHER) is None


def test_what_is_anothers_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert kept.read("things", KEY) is None
    kept.write("things", OTHER, b"more")
    assert [p.name for p in folder.iterdir()] == [KEY]


def test_a_shared_folder_gets_nothing(folder: Path) -> None:
    folder.chmod(0o777)
    kept.write("things", OTHER, b"more")
    assert [p.name for p in folder.iterdir()] == [KEY]


def test_files_are_the_users_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / KEY).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "environment",
    [
        {"OPDOCK_CACHE": "here"},
        {"OPDOCK_CACHE": ""},
        {"XDG_CACHE_HOME": "here", "HOME": "here"},
        {"HOME": "here"},
        {"HOME": "."},
    ],
)
def test_no_place_depends_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPDOCK_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kept.write("things", KEY, b"code")
    assert kept.read("things", KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPDOCK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    kept.write("things", KEY, b"code")
    assert kept.read("things", KEY) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_nothing_is_left_of_what_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(os, "replace", fail)
    if error is OSError:
        kept.write("things", OTHER, b"more")
    else:
        with pytest.raises(error):
            kept.write("things", OTHER, b"more")
    assert [p.name for p in folder.iterdir()] == [KEY]
