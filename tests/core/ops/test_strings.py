"""Public functions of strings: shapes, old names of arguments, errors when a graph is built."""

from __future__ import annotations

import inspect

import pytest

import opdock as tf


def test_static_shapes():
    strings = tf.placeholder(tf.string, [2, None, 4])
    assert tf.reduce_join(strings, 0).shape.as_list() == [None, 4]
    assert tf.reduce_join(strings, [0, 2], keepdims=True).shape.as_list() == [1, None, 1]
    assert tf.reduce_join(tf.placeholder(tf.string)).shape.ndims is None
    assert tf.substr(strings, [0] * 4, [1] * 4).shape.as_list() == [2, None, 4]
    joined = tf.strings.unsorted_segment_join(strings, [0, 1], 5)
    assert joined.shape.as_list() == [5, None, 4]
    split = tf.string_split(tf.placeholder(tf.string, [3]))
    assert split.values.shape.as_list() == [None]


def test_arguments_under_two_names():
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.reduce_join([["a"]], axis=0, reduction_indices=0)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.string_split(["a"], sep=",", delimiter=",")


def test_result_types():
    with pytest.raises(ValueError, match="result_type must be"):
        tf.string_split(["a"], result_type="list")
    with pytest.raises(ValueError, match="result_type must be"):
        tf.strings.split(["a"], result_type="list")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("strings.length", "input name unit"),
        ("strings.split", "input sep maxsplit result_type source name"),
        ("strings.to_hash_bucket", "string_tensor num_buckets name input"),
        ("strings.reduce_join", "inputs axis keep_dims separator name reduction_indices keepdims"),
        ("string_split", "source sep skip_empty delimiter result_type name"),
        ("substr", "input pos len name unit"),
        ("decode_csv",
         "records record_defaults field_delim use_quote_delim name na_value select_cols"),
        ("parse_example", "serialized features name example_names"),
        ("io.parse_sequence_example",
         "serialized context_features sequence_features example_names name"),
        ("io.gfile.rename", "src dst overwrite"),
        ("io.gfile.walk", "top topdown onerror"),
    ],
)  # fmt: skip
def test_signatures_are_tfs(name, arguments):
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    assert list(inspect.signature(found).parameters) == arguments.split()


def test_a_format_has_as_many_places_as_tensors():
    with pytest.raises(ValueError, match="2 placeholder.s. in template does not match 1 tensor"):
        tf.strings.format("{} {}", tf.constant(1))
    with tf.Session() as sess:
        assert sess.run(tf.strings.format("a {}!", tf.range(9))) == b"a [0 1 2 ... 6 7 8]!"


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_strings_without_a_mark_are_big_endian(encoding):
    text = "a\u20ac"
    for codec, mark in (("be", b""), ("be", "\ufeff"), ("le", "\ufeff")):
        name = f"{encoding}-{codec}"
        raw = (mark.encode(name) if mark else b"") + text.encode(name)
        with tf.Session() as session:
            got = session.run(tf.strings.unicode_transcode(raw, encoding, "UTF-8"))
        assert got == text.encode()


def test_splitting_as_tf_2_has_it():
    parts = tf.compat.v2.strings.split([["a b", "c"], ["", " d  e "]])
    with tf.Session() as session:
        assert session.run(parts).to_list() == [[[b"a", b"b"], [b"c"]], [[], [b"d", b"e"]]]
