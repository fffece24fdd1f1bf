"""What distributions announce is found as `importlib.metadata` finds it, mostly without it."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, DistributionFinder

import pytest

from opdock.plugins.installed import Announcement, announced, installed_files

GROUP = "acme.tools"


def install(folder, name, version, lines, kind="dist-info", about="METADATA"):
    place = folder / f"{name}-{version}.{kind}"
    place.mkdir(parents=True)
    (place / about).write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: x\n"
    )
    (place / "entry_points.txt").write_text(lines)
    return place


def as_importlib_has_it(*groups):
    found = []
    for group in groups:
        for e in importlib.metadata.entry_points(group=group):
            found.append(Announcement(group, e.name, e.value, e.dist.name, e.dist.version))
    return found


def ordered(found):
    return sorted(found, key=lambda e: (e.group, e.name, e.value))


@pytest.fixture(autouse=True)
def _no_hooks(monkeypatch):
    """No import hooks that other tests have left: with those `importlib.metadata` is asked."""
    own = [f for f in sys.meta_path if f is PathFinder or not hasattr(f, "find_distributions")]
    monkeypatch.setattr(sys, "meta_path", own)


@pytest.fixture
def first(tmp_path, monkeypatch):
    """A folder that comes before all others."""
    folder = tmp_path / "first"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_what_is_installed_here():
    groups = ("opdock.backends", "opdock.plugins", "console_scripts", "pytest11")
    found = announced(*groups)
    assert {"cpu", "echo"} <= {e.name for e in found}
    assert ordered(found) == ordered(as_importlib_has_it(*groups))


def test_lines_groups_and_kinds_of_folders(first):
    text = f"""
# a remark
[other]
a = elsewhere:f
[{GROUP}]
one = os.path:join
#two = gone
 three=json [fast]
[another]
one = json:loads
"""
    install(first, "Acme.Tools", "1.0", text)
    install(
        first, "older", "2", f"[{GROUP}]\nfour = json:JSONDecoder.decode\n", "egg-info", "PKG-INFO"
    )
    install(first, "none", "3", "[other]\n")
    found = announced(GROUP)
    assert ordered(found) == ordered(as_importlib_has_it(GROUP))
    by_name = {e.name: e for e in found}
    assert [*map(len, (found, by_name))] == [3, 3]
    assert by_name["one"] == Announcement(GROUP, "one", "os.path:join", "Acme.Tools", "1.0")
    loaded = {name: e.load() for name, e in by_name.items()}
    import json

    expected = {"one": os.path.join, "three": json, "four": json.JSONDecoder.decode}
    assert loaded == expected


def test_the_first_of_a_name_counts(first, tmp_path, monkeypatch):
    install(first, "acme_tools", "1.0", f"[{GROUP}]\nold = json\n")
    before = tmp_path / "before"
    install(before, "Acme.Tools", "2.0", f"[{GROUP}]\nnew = json\n")
    monkeypatch.syspath_prepend(str(before))
    (found,) = announced(GROUP)
    assert (found.name, found.version) == ("new", "2.0")
    assert [found] == as_importlib_has_it(GROUP)


def test_folders_that_say_nothing_announce_nothing(first, monkeypatch):
    (first / "empty-1.dist-info").mkdir()
    (first / "file-1.egg-info").write_text("Name: file\n")
    place = install(first, "odd", "1", "")
    (place / "entry_points.txt").write_bytes(b"[acme.tools]\nx = \xff\n")
    monkeypatch.syspath_prepend(str(first / "not there"))
    assert announced(GROUP) == []


@pytest.mark.parametrize("name", ["numpy", "pytest", "PyTest-Cov", "ml_dtypes"])
def test_files_of_what_is_installed(name):
    try:
        expected = importlib.metadata.files(name) or ()
    except importlib.metadata.PackageNotFoundError:
        expected = ()
    assert installed_files(name) == [os.path.normpath(str(f.locate())) for f in expected]


def test_files_whose_names_have_commas_and_wheels_that_say_nothing(first):
    install(first, "odd", "1", "")
    assert installed_files("odd") == installed_files("nowhere") == []
    record = first / "odd-1.dist-info" / "RECORD"
    record.write_text('"a,b.py",sha256=x,3\n../../lib/odd.so,,\n\n')
    expected = [first / "a,b.py", first.parent.parent / "lib" / "odd.so"]
    assert installed_files("Odd") == [*map(str, expected)]


def test_paths_that_are_no_text(first, tmp_path, monkeypatch):
    install(tmp_path / "more", "acme", "1", f"[{GROUP}]\na = json\n")
    monkeypatch.setattr(sys, "path", [*sys.path, None, b"bytes", tmp_path / "more"])
    assert [e.name for e in announced(GROUP)] == ["a"]


def test_the_current_folder_is_an_empty_path(tmp_path, monkeypatch):
    install(tmp_path, "acme", "1", f"[{GROUP}]\na = json\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert [e.name for e in announced(GROUP)] == ["a"]


def test_archives_are_looked_into(first, tmp_path, monkeypatch):
    place = install(tmp_path, "packed", "1.5", f"[{GROUP}]\npacked = json:loads\n")
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for one in place.iterdir():
            file.write(one, f"{place.name}/{one.name}")
    monkeypatch.syspath_prepend(str(archive))
    assert announced(GROUP) == [Announcement(GROUP, "packed", "json:loads", "packed", "1.5")]


def test_import_hooks_are_asked(monkeypatch):
    class Made(Distribution):
        def read_text(self, filename):
            texts = {
                "METADATA": "Name: made\nVersion: 7\n",
                "entry_points.txt": f"[{GROUP}]\na = b\n",
            }
            return texts.get(filename)

        def locate_file(self, path):
            raise NotImplementedError

    class Hook(DistributionFinder):
        def find_distributions(self, context=None):
            yield Made()

        def find_spec(self, *asked):
            return None

    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])
    assert announced(GROUP) == [Announcement(GROUP, "a", "b", "made", "7")]


def test_a_session_does_without_the_parsers_of_messages():
    code = """
import sys
before = {*sys.modules}
import opdock as tf
tf.Session()
print({"email", "importlib.metadata", "zipfile", "socket"} & ({*sys.modules} - before) or "none")
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "none\n"
