"""String kernels give the same from packed bytes, in generated code, as from Python's objects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import strings
from opdock_cpu.text import hashing, number_loops, numbers
from opdock_cpu.text.arrays import each_distinct
from opdock_cpu.text.packed import Packed, packed
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(5)
COUNT = 600
MIXED = b"abAZ ,;\t\n0\xc3\xa9"
PLAIN = b"abAZ ,;\t\n0"

Both = Callable[..., Any]


def _texts(letters: bytes, most: int = 12) -> Any:
    """Random strings, some of them empty."""
    among = np.frombuffer(letters, np.uint8)
    out = np.empty(COUNT, object)
    out[:] = [bytes(RNG.choice(among, RNG.integers(0, most + 1))) for _ in range(COUNT)]
    return out


def _given(value: Any) -> Any:
    """Strings that are no constant, which would be folded."""
    tensor = tf.py_func(lambda: value, [], tf.string)
    tensor.set_shape(value.shape)
    return tensor


@pytest.fixture
def same(both: Both, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Checks that a graph gives the same with packed strings and without, and packs some."""

    def run(build: Callable[[], Sequence[Any]]) -> None:
        ready, packs = strings._ready, []
        monkeypatch.setattr(strings, "_FEW", 1)
        monkeypatch.setattr(strings, "_WORTH", 1)

        def spied(count: int) -> Any:
            packs.append(ready(count))
            return packs[-1]

        monkeypatch.setattr(strings, "_ready", spied)
        found, _ = both(build)
        assert any(packs)
        monkeypatch.setattr(strings, "_ready", lambda count: None)
        _, wanted = both(build)
        for a, b in zip(found, wanted, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)

    return run


Same = Callable[[Callable[[], Sequence[Any]]], None]
LETTERS = pytest.mark.parametrize("letters", [MIXED, PLAIN], ids=["utf8", "ascii"])


@LETTERS
def test_each_string(same: Same, letters: bytes) -> None:
    texts = _texts(letters)

    def build() -> Sequence[Any]:
        x = _given(texts)
        return [
            tf.strings.length(x),
            tf.strings.length(x, unit="UTF8_CHAR"),
            tf.strings.lower(x),
            tf.strings.upper(x, encoding="utf-8"),
            tf.strings.strip(x),
        ]

    same(build)


@LETTERS
@pytest.mark.parametrize("unit", ["BYTE", "UTF8_CHAR"])
@pytest.mark.parametrize(("at", "size"), [(0, 2), (-2, 1), (1, -1), (2, 2**62), (3, 0)])
def test_parts(same: Same, letters: bytes, unit: str, at: int, size: int) -> None:
    texts = _texts(letters)

    def build() -> Sequence[Any]:
        x = tf.strings.join([_given(texts), b"..."])
        places = tf.constant([[at], [0]], tf.int64)
        part = tf.strings.substr(x, np.int64(at), np.int64(size), unit=unit)
        wide = tf.strings.substr(x, places, tf.fill([2, 1], np.int64(size)), unit=unit)
        return [part, wide]

    same(build)


def test_a_position_outside_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    texts = _texts(PLAIN)
    texts[:] = b"abc"
    texts[7] = b"a"
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="pos 2 out of range .* at index 7"),
    ):
        session.run(tf.strings.substr(_given(texts), 2, 1))


@pytest.mark.parametrize("marks", [b",", b",; ", b""])
@pytest.mark.parametrize("skip", [True, False])
def test_splits(same: Same, marks: bytes, skip: bool) -> None:
    texts = _texts(MIXED)

    def build() -> Sequence[Any]:
        found = tf.string_split(_given(texts), marks, skip)
        return [found.indices, found.values, found.dense_shape]

    same(lambda: [*build(), tf.strings.length(_given(texts))])


@pytest.mark.parametrize("mark", [b"", b",", b"ab"])
@pytest.mark.parametrize("limit", [-1, 0, 2])
def test_splits_as_python_does(same: Same, mark: bytes, limit: int) -> None:
    texts = _texts(PLAIN)

    def build() -> Sequence[Any]:
        x = _given(texts)
        found = tf.raw_ops.StringSplitV2(input=x, sep=mark, maxsplit=limit)
        return [found.indices, found.values, found.shape, tf.strings.length(x)]

    same(build)
    with tf.Session() as session:
        rows = session.run(build())
    if mark == b"," and limit < 0:
        assert rows[1].tolist() == [part for text in texts for part in text.split(b",")]


@pytest.mark.parametrize("mark", ["", "--"])
def test_joins(same: Same, mark: str) -> None:
    texts, more = _texts(MIXED, 4), _texts(MIXED, 4)
    rows = texts.reshape(30, 20)
    segments = RNG.integers(0, COUNT // 3, COUNT), RNG.integers(0, 20, 30)

    def build() -> Sequence[Any]:
        x, y, matrix = _given(texts), _given(more), _given(rows)
        joined = tf.strings.unsorted_segment_join
        return [
            tf.strings.join([x, "z", y], mark),
            tf.reduce_join(matrix, 1, separator=mark),
            tf.reduce_join(matrix, 0, keep_dims=True, separator=mark),
            tf.reduce_join(matrix, [0, 1], separator=mark),
            joined(x, tf.constant(segments[0]), COUNT // 3 + 1, separator=mark),
            joined(matrix, tf.constant(segments[1]), 21, separator=mark),
        ]

    same(build)


def test_codes(same: Same) -> None:
    texts = _texts(bytes(range(256)), 20)

    def build() -> Sequence[Any]:
        x = _given(texts)
        code, filled = tf.io.encode_base64(x), tf.io.encode_base64(x, pad=True)
        wide = {"input_bytes": x, "fixed_length": 8, "little_endian": False}
        return [
            code, filled, tf.io.decode_base64(code), tf.io.decode_base64(filled),
            tf.raw_ops.DecodePaddedRaw(out_type=tf.int16, **wide),
            tf.io.decode_raw(tf.strings.substr(tf.strings.join([x, "abcd"]), 0, 4), tf.int32),
        ]  # fmt: skip

    same(build)


def test_no_base64_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    for bad in (b"a", b"a*bc", b"a=bc"):
        texts = np.array([b"YWJj"] * COUNT + [bad], object)
        with (
            tf.Session() as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="ase64"),
        ):
            session.run(tf.io.decode_base64(_given(texts)))


def test_numbers(same: Same) -> None:
    reals = RNG.normal(size=COUNT).astype(np.float32)
    wholes = RNG.integers(-1000, 1000, COUNT)
    names = _texts(b"abc", 3)

    def build() -> Sequence[Any]:
        real, whole = tf.as_string(tf.constant(reals)), tf.as_string(tf.constant(wholes))
        real, whole = _again(real), _again(whole)
        lines = tf.strings.join([real, whole, _given(names), whole], ",")
        return [
            real, whole,
            tf.string_to_number(real), tf.string_to_number(real, tf.float64),
            tf.string_to_number(whole, tf.int32), tf.string_to_number(whole, tf.int64),
            *tf.decode_csv(lines, [[0.0], [1], [b"none"], [b""]]),
            *tf.decode_csv(lines, [tf.constant([1], tf.int64), [b"none"]], select_cols=[1, 2]),
            *tf.decode_csv(tf.strings.join(["7,,", whole]), [[0], [5], [0.5]]),
        ]  # fmt: skip

    same(build)


def _again(strings: Any) -> Any:
    """The same, by a function of Python's."""
    out = tf.py_func(lambda x: x, [strings], tf.string)
    out.set_shape(strings.shape)
    return out


def test_a_field_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    lines = np.array([b"1,2"] * COUNT, object)
    lines[9] = b"1,x"
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Field 1 in record 9 .*: x"),
    ):
        session.run(tf.decode_csv(_given(lines), [[0], [0]]))


def _whole(texts: Sequence[bytes], monkeypatch: pytest.MonkeyPatch) -> Packed:
    """Strings as packed bytes."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    items = np.empty(len(texts), object)
    items[:] = texts
    found = packed(items)
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.int64, np.uint64])
def test_numbers_are_read_as_python_reads_them(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = np.frombuffer(b"0123456789+-.eE \tinfx", np.uint8)
    texts = [bytes(RNG.choice(letters, RNG.integers(0, 8))) for _ in range(6000)]
    texts += [repr(float(x)).encode() for x in RNG.normal(size=600) * 10.0 ** np.arange(-300, 300)]
    texts += [b" %d " % RNG.integers(-(2**62), 2**62) for _ in range(999)]
    texts += [b"-0", b"-0.0", b"1e22", b"1e23", b"9007199254740993", b"-128", b"127", b"128"]
    whole = _whole(texts, monkeypatch)
    found = number_loops.read(whole, whole.starts, whole.ends, np.dtype(dtype))
    assert found is not None
    values, left = found
    read = numbers.reader(np.dtype(dtype))
    inside = np.setdiff1d(np.arange(len(texts)), left)
    assert inside.size > 400
    for i in inside.tolist():
        wanted = read(texts[i])
        assert wanted is not None
        assert np.array_equal(values[i], wanted)
        assert np.signbit(values[i]) == np.signbit(wanted)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.float64, np.int8, np.int64, np.uint64]
)
@pytest.mark.parametrize("places", [0, 1, 6, 9])
def test_numbers_are_printed_as_c_prints_them(
    dtype: Any, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    kind = np.dtype(dtype)
    if kind.kind == "f":
        x = (RNG.normal(size=3000) * 10.0 ** RNG.integers(-12, 4, 3000)).astype(kind)
        x[:8] = [0.0, -0.0, 0.5, 1.5, 2.5, -1e-9, 6e-8, 0.125]
        if kind == np.float64:
            x[8:500] *= 10.0 ** RNG.integers(-300, 5, 492)
            x[500:999] = np.round(x[500:999] * 1024) / 1024 + 2.0**28  # many of them ties
        form = b"%%.%df" % places
    else:
        info = np.iinfo(kind)
        x = RNG.integers(info.min, min(int(info.max), 2**63 - 1), 3000).astype(kind)
        x[:2] = info.min, min(int(info.max), 2**63 - 1)
        form = b"%d"
    found = number_loops.printed(x, places)
    assert found is not None
    assert found.tolist() == [form % v for v in x.tolist()]


def test_what_no_whole_number_holds_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    for bad in (np.nan, np.inf, 1e30):
        assert number_loops.printed(np.full(300, bad, np.float32), 6) is None
    assert number_loops.printed(np.full(300, 2**64 - 1, np.uint64), 6) is None


def test_hashes(same: Same) -> None:
    texts = _texts(bytes(range(256)), 500)
    texts[:300] = [bytes(RNG.integers(0, 256, n).astype(np.uint8)) for n in range(300)]
    key = [2**63 - 5, -9]

    def build() -> Sequence[Any]:
        x = _given(texts)
        many = 2**62
        return [
            tf.strings.to_hash_bucket_fast(x, many),
            tf.string_to_hash_bucket(x, many),
            tf.strings.to_hash_bucket_strong(x, many, key),
            tf.raw_ops.Fingerprint(data=x, method="farmhash64"),
            tf.raw_ops.SdcaFprint(input=x),
        ]

    same(build)
    known = hashing.fingerprint64([b"abc"])[0]
    assert int(known) == 0x24A5B3A074E7F369


def test_what_is_no_string_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    with pytest.raises(TypeError, match="expected bytes, int found"):
        packed(np.array([b"a"] * 299 + [3], object))


def test_objects_are_kept_as_often_as_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:

    one = b"a string of this test alone"
    whole = _whole([one] * 300, monkeypatch)
    before = sys.getrefcount(one)
    for _ in range(3):
        assert packed([one] * 300) is not None
    assert sys.getrefcount(one) == before
    made = whole.pieces(whole.starts, whole.ends, (300,))
    count = sys.getrefcount(made[7])
    assert count == 2  # the array's, and the argument
    assert made[7] == one


def test_equal_strings_are_looked_at_once() -> None:
    asked: list[bytes] = []

    def upper(text: bytes) -> bytes:
        asked.append(text)
        return text.upper()

    texts = np.array([[b"b", b"a"], [b"b", b""]], object)
    assert each_distinct(upper, texts) == [b"B", b"A", b"B", b""]
    assert asked == [b"b", b"a", b""]


@pytest.mark.parametrize("pad", [-1, 0, 1, 5])
@pytest.mark.parametrize("widths", [[2], [1, 3], [4, 2, 9]])
@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("mark", [b"", b" ", b"\xc3\xa9|"])
def test_windows(both: Both, pad: int, widths: list[int], preserve: bool, mark: bytes) -> None:
    texts = _texts(MIXED)
    splits = np.sort(np.concatenate([[0, COUNT, 7, 7, 8], RNG.integers(0, COUNT, 40)]))

    def build() -> Any:
        return list(
            tf.raw_ops.StringNGrams(
                data=_given(texts), data_splits=given(splits), separator=mark, left_pad=b"<s>",
                right_pad=b">", ngram_widths=widths, pad_width=pad,
                preserve_short_sequences=preserve,
            )
        )  # fmt: skip

    (found, ends), (wanted, plain_ends) = both(build, "_measure", "_fill")
    assert found.tolist() == wanted.tolist()
    np.testing.assert_array_equal(ends, plain_ends)


@pytest.mark.parametrize("mark", [b"", b"-", b"a mark of more than 16 bytes"])
@pytest.mark.parametrize("longest", [3, 16, 17, 130, 600])
def test_strings_of_any_length(mark: bytes, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones are copied in one piece, also where a page of memory ends behind them."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    sizes = RNG.integers(0, longest + 1, (3, 5000))
    columns = [np.empty(5000, object) for _ in sizes]
    for column, row in zip(columns, sizes, strict=True):
        column[:] = [RNG.bytes(n) for n in row]
    columns[2] = np.broadcast_to(columns[2][:1], 5000)
    whole = strings.packed(columns[0])
    assert whole is not None
    assert whole[0].tobytes() == b"".join(columns[0])
    assert np.diff(whole[1]).tolist() == sizes[0].tolist()
    together = strings.joined(columns, mark)
    assert together is not None
    assert together.tolist() == [mark.join(row) for row in zip(*columns, strict=True)]
    matrix = np.stack(columns).T[::-1]
    rows = strings.joined(matrix.T, mark)
    assert rows is not None and rows.tolist() == together.tolist()[::-1]


def test_what_is_no_string_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    columns = [np.array([b"a"] * 4999 + [last], object) for last in (b"b", 3)]
    with pytest.raises(TypeError, match="expected bytes, int found"):
        strings.joined(columns, b",")
