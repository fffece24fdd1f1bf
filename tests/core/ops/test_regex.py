"""Regular expressions: RE2's own semantics, and what stands in for it."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock_cpu.text import regex


@pytest.mark.parametrize("engine", ["", "re"])
@pytest.mark.parametrize(
    ("pattern", "rewrite", "text", "expected"),
    [
        (rb"x*", rb"-", b"abxd", b"-a-b-d-"),
        (rb"(b)(c)?", rb"<\1\2\0\\>", b"abd", b"a<bb\\>d"),
        (rb"^a", rb"", b"aaa", b"aa"),
        (rb"a", rb"\7", b"a", b"a"),
        (rb"a", rb"\q", b"a", b"a"),
    ],
)
def test_replacing_is_re2s(engine, pattern, rewrite, text, expected):
    assert regex.replace(regex.compiled(pattern, engine), rewrite, text, True) == expected


def test_an_empty_match_does_not_split_a_character():
    pattern = regex.compiled(rb"x*")
    assert regex.replace(pattern, b"-", "é".encode(), True) == "-é-".encode()


def test_a_pattern_takes_linear_time_where_re2_is():
    pytest.importorskip("re2", reason="google-re2 is optional: without it Python's engine serves")
    pattern = regex.compiled(rb"(a*)*b")
    assert pattern.fullmatch(b"a" * 20000) is None


def test_a_malformed_pattern_is_told():
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"Invalid pattern: a\(, error: "),
    ):
        sess.run(tf.regex_replace(["a"], "a(", ""))


def test_texts_become_attributes_only_if_all_are_known():
    pattern = tf.placeholder(tf.string, [])
    assert tf.regex_replace(["a"], "a", "b").op.type == "StaticRegexReplace"
    assert tf.regex_replace(["a"], pattern, "b").op.type == "RegexReplace"
    assert tf.strings.regex_full_match(["a"], pattern).op.type == "RegexFullMatch"
