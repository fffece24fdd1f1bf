"""Samples of parsing: lines of CSV and JSON; the messages of Examples are written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _words(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def _scalar(value: bytes) -> np.ndarray[Any, Any]:
    out = np.empty((), object)
    out[()] = value
    return out


# ---------------------------------------------------------------- messages
def _field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def _feature(values: list[Any]) -> bytes:
    """A Feature of bytes, of floats or of small integers; one without values has no type."""
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, v) for v in values))
    if isinstance(values[0], float):
        return _field(2, _field(1, np.array(values, "<f4").tobytes()))
    return _field(3, _field(1, bytes(values)))


def _features(named: dict[str, list[Any]]) -> bytes:
    pairs = (_field(1, key.encode()) + _field(2, _feature(v)) for key, v in named.items())
    return b"".join(_field(1, pair) for pair in pairs)


def _example(**named: Any) -> bytes:
    return _field(1, _features(named))


def _lists(named: dict[str, list[list[Any]]]) -> bytes:
    out = b""
    for key, steps in named.items():
        found = b"".join(_field(1, _feature(step)) for step in steps)
        out += _field(1, _field(1, key.encode()) + _field(2, found))
    return out


def _sequence(context: dict[str, Any], lists: dict[str, Any]) -> bytes:
    return _field(1, _features(context)) + _field(2, _lists(lists))


_BATCH = _words(
    _example(i=[1, 2], f=[0.5], s=[b"x", b"y"], v=[1, 2, 3, 4]),
    _example(i=[3, 4], s=[b"z"]),
    _example(i=[5, 6], f=[1.5], v=[9, 8]),
)
_INT, _FLOAT, _STRING = np.dtype(np.int64), np.dtype(np.float32), np.dtype(object)
_NONE = np.empty(0, np.int64)
_DEFAULTS = [_NONE, np.array([-1.0], np.float32), np.array(7, np.int64)]
_ATTRS: dict[str, Any] = {"sparse_types": [_STRING], "dense_shapes": [(2,), (1,), (None, 2)]}
_DENSE_KEYS = [_scalar(key) for key in (b"i", b"f", b"v")]


@samples("ParseExample")
def batches(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Sparse and dense features, a default, rows that are padded; no examples at all."""
    for tag, batch in (("three", _BATCH), ("none", np.empty(0, object))):
        inputs = [batch, np.empty(0, object), [_scalar(b"s")], _DENSE_KEYS, _DEFAULTS]
        yield Sample(inputs, _ATTRS, tag)


@error_samples("ParseExample")
def no_batch() -> Iterable[ErrorSample]:
    """A text, a feature that is missing, one of another size, one of another type."""
    names = np.empty(0, object)

    def wrong(batch: Any, keys: list[Any], defaults: list[Any], shape: Any, match: str) -> Any:
        attrs = {"sparse_types": [], "dense_shapes": [shape]}
        return ErrorSample([batch, names, [], keys, defaults], attrs, match=match, tag=match[:12])

    key, floats = [_scalar(b"f")], [np.empty(0, np.float32)]
    yield wrong(_words(b"\xff"), key, floats, (1,), "Could not parse example input, value")
    yield wrong(
        _BATCH, key, floats, (1,),
        r"Name: <unknown>, Feature: f \(data type: float\) is required but could not be found",
    )  # fmt: skip
    yield wrong(
        _BATCH[:1], key, floats, (2,),
        r"Key: f, Index: 0\.  Number of float values != expected\.  Values size: 1",
    )  # fmt: skip
    yield wrong(
        _BATCH[:1], key, [_NONE], (1,), "Data types don't match. Data type: float but expected"
    )


@samples("ParseSingleExample")
def single(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each of the batch by itself."""
    keys = {"sparse_keys": ["s"], "dense_keys": ["i", "f", "v"], "num_sparse": 1}
    for i, text in enumerate(_BATCH):
        yield Sample([_scalar(text), _DEFAULTS], {**_ATTRS, **keys}, f"example{i}")


@error_samples("ParseSingleExample")
def no_single() -> Iterable[ErrorSample]:
    """A feature that is missing."""
    keys = {"sparse_keys": [], "dense_keys": ["f"], "num_sparse": 0, "sparse_types": []}
    yield ErrorSample(
        [_scalar(_BATCH[1]), [np.empty(0, np.float32)]], {**keys, "dense_shapes": [(1,)]},
        match=r"Feature: f \(data type: float\) is required but could not be found", tag="missing",
    )  # fmt: skip


_STEPS = {"t": [[1, 2], [3, 4]], "u": [[b"a"], [], [b"b", b"c"]]}
_SEQUENCES = _words(
    _sequence({"c": [5], "k": [b"p", b"q"]}, _STEPS),
    _sequence({"c": [6]}, {"t": [[7, 8], [9, 1], [2, 3]]}),
    _sequence({}, {}),
)
_SEQUENCE_ATTRS: dict[str, Any] = {
    "context_sparse_types": [_STRING], "context_dense_shapes": [()],
    "feature_list_sparse_types": [_STRING], "feature_list_dense_types": [_INT],
    "feature_list_dense_shapes": [(2,)],
}  # fmt: skip
_ONES = dict.fromkeys(
    ("Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense"), 1
)


@samples("ParseSequenceExample")
def sequences(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Contexts and lists of several lengths, one of them missing."""
    attrs = {
        **_SEQUENCE_ATTRS, **_ONES, "context_sparse_keys": ["k"], "context_dense_keys": ["c"],
        "feature_list_sparse_keys": ["u"], "feature_list_dense_keys": ["t"],
        "feature_list_dense_missing_assumed_empty": ["t"],
    }  # fmt: skip
    yield Sample([_SEQUENCES, np.empty(0, object), [np.array(-1, np.int64)]], attrs, "three")


@samples("ParseSingleSequenceExample")
def single_sequences(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each of the batch by itself."""
    for i, text in enumerate(_SEQUENCES):
        inputs = [
            _scalar(text), _words(b"t"), [_scalar(b"k")], [_scalar(b"c")], [_scalar(b"u")],
            [_scalar(b"t")], [np.array(-1, np.int64)], _scalar(b""),
        ]  # fmt: skip
        yield Sample(inputs, _SEQUENCE_ATTRS, f"sequence{i}")


@error_samples("ParseSingleSequenceExample")
def no_sequence() -> Iterable[ErrorSample]:
    """A list that is missing."""
    inputs = [
        _scalar(_SEQUENCES[2]), np.empty(0, object), [_scalar(b"k")], [_scalar(b"c")],
        [_scalar(b"u")], [_scalar(b"t")], [np.array(-1, np.int64)], _scalar(b"in"),
    ]  # fmt: skip
    yield ErrorSample(
        inputs, _SEQUENCE_ATTRS, match="Name: in, Feature list 't' is required but could not be",
        tag="missing",
    )  # fmt: skip


# ---------------------------------------------------------------- text
@samples("DecodeCSV")
def lines(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Quotes, missing fields, chosen columns, another delimiter."""
    defaults = [np.array([7], np.int32), np.array([], np.float32), np.array([b"-"], object)]
    plain = _words(b'1,2.5,"a ""b"", c"', b",3,", b"\r\n4,1e3,x")
    yield Sample([plain, defaults], {}, "types")
    tabs = _words([b"1\t2\t3", b'4\t5\t"'])
    strings = [np.array([b""], object)] * 3
    yield Sample([tabs, strings], {"field_delim": "\t", "use_quote_delim": False}, "tabs")
    one = [np.array([0], np.int64)]
    chosen = {"select_cols": [1], "na_value": "NA"}
    yield Sample([_words(b"a,5,b", b"c,NA,d"), one], chosen, "chosen")


@error_samples("DecodeCSV")
def no_lines() -> Iterable[ErrorSample]:
    """Too many fields, a quote in the middle, no number, a field that must be there."""
    number = [np.array([], np.int32)]
    for line, match in (
        (b"1,2", "Expect 1 fields but have 2 in record 0"),
        (b'1"', "Unquoted fields cannot have quotes/CRLFs inside"),
        (b'"1', "Quoted field has to end with quote"),
        (b"x", "Field 0 in record 0 is not a valid int32: x"),
        (b'""', "Field 0 is required but missing in record 0"),
    ):
        yield ErrorSample([_words(line), number], match=match, tag=line.decode())


@samples("DecodeJSONExample")
def json_examples(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One feature, and none."""
    text = b'{"features": {"feature": {"i": {"int64List": {"value": ["5"]}}}}}'
    yield Sample([_words(text, b"{}")], {}, "plain")


@error_samples("DecodeJSONExample")
def no_json() -> Iterable[ErrorSample]:
    """Half a message, and a field that there is not."""
    for text in (b"{", b'{"nothing": 1}'):
        yield ErrorSample([_words(text)], match="Error while parsing JSON", tag=text.decode())
