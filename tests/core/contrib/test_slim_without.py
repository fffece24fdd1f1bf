"""`tf.contrib.slim` without tf_slim: its layers are contrib's, with sizes and summaries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import opdock as tf
from opdock.contrib.slim import model_analyzer, summaries


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_sizes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    fed = tf.placeholder(tf.float64, [None, 2], name="fed")
    kernel = tf.get_variable("kernel", [3, 4])
    count = tf.get_variable("count", [], tf.int64)
    assert model_analyzer.analyze_vars([kernel, count], print_info=True) == (13, 56)
    assert capsys.readouterr().out.splitlines()[3:] == [
        f"kernel:0 ({kernel.dtype.name} 3x4) [12, bytes: 48]",
        f"count:0 ({count.dtype.name} ) [1, bytes: 8]",
        "Total size of variables: 13", "Total bytes of variables: 56",
    ]  # fmt: skip
    assert model_analyzer.tensor_description(fed) == "(float64 ?x2)"
    with tf.Graph().as_default() as graph:
        tf.ones([2, 3], name="six")
        assert model_analyzer.analyze_ops(graph, print_info=True) == 6
    assert capsys.readouterr().out.splitlines()[3] == "six \t-> (float32 2x3) [6]"


def test_summaries_by_names(capfd: pytest.CaptureFixture[str]) -> None:
    tensors = [tf.constant(3.0, name="a"), tf.constant(0.0, name="b")]
    summaries.add_scalar_summaries(tensors, prefix="all", print_summary=True)
    summaries.add_zero_fraction_summaries(tensors)
    summaries.add_histogram_summaries(tensors, "wide")
    summaries.add_image_summary(tf.zeros([1, 2, 2, 1]), "picture")
    with tf.Session() as sess:
        told = tf.summary.Summary.FromString(sess.run(tf.summary.merge_all()))
    found = {v.tag: v.simple_value for v in told.value}
    assert sorted(found) == [
        "a/Fraction_of_Zero_Values", "all/a", "all/b", "b/Fraction_of_Zero_Values",
        "picture/image/0", "wide/a", "wide/b",
    ]  # fmt: skip
    assert [found["all/a"], found["b/Fraction_of_Zero_Values"]] == [3.0, 1.0]
    assert "all/a" in capfd.readouterr().err


def test_old_names_of_datasets() -> None:
    data = tf.contrib.data.Dataset.from_tensor_slices([1, 2])
    assert isinstance(data, tf.data.Dataset)
    assert tf.contrib.data.Iterator is tf.data.Iterator
