"""Files of arrays: what is damaged or claims too much is refused, and nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from opdock.io.array_files import Arrays, array_of


def saved(value: object, **options: bool) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(value), **options)
    return out.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_by_name(tmp_path: Path, save) -> None:
    path = tmp_path / "a.npz"
    given = {"x": np.arange(6.0).reshape(2, 3), "s": np.array([b"a", b"bc"]), "e": np.zeros((0, 2))}
    given["f"] = np.asfortranarray(given["x"])
    save(path, **given)
    with Arrays(path) as found:
        assert {*found} == {*given}
        for name, value in given.items():
            np.testing.assert_array_equal(found[name], value)
        with pytest.raises(KeyError):
            found["none"]


def test_what_is_refused(tmp_path: Path) -> None:
    good = saved(np.arange(3.0))
    for data, words in (
        (b"", "EOF"), (b"text of another kind", "magic"), (good[:-1], "has 23 bytes"),
        (good.replace(b"(3,)", b"(-1,"), "head"), (good.replace(b"(3,)", b"(9,)"), "has 24 bytes"),
        (good.replace(b"{", b"("), "head|damaged|Cannot parse|literal"),
        (saved(np.array([{}], object), allow_pickle=True), "Python objects"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            array_of(data)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(10_000))
    with Arrays(path, packed=False) as arrays, pytest.raises(ValueError, match="is compressed"):
        arrays["x"]
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\x01\x02") + 24  # what the directory says of its size
    raw[at : at + 4] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(raw)
    with Arrays(path) as arrays, pytest.raises(ValueError, match="larger than it can be"):
        arrays["x"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", good)
    with Arrays(path) as arrays, pytest.raises(ValueError, match="is compressed"):
        arrays["x"]
    with pytest.raises(FileNotFoundError):
        Arrays(tmp_path / "none")
