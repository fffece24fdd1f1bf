"""Summary ops: names and tags, values, errors."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest

import opdock as tf
from opdock.io import summary_format


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(op: tf.Tensor, feed: dict | None = None) -> tf.Summary:
    with tf.Session() as sess:
        return tf.Summary.FromString(sess.run(op, feed))


def test_names_and_tags() -> None:
    with tf.name_scope("ns"):
        first = tf.summary.scalar("acc", tf.constant(0.25))
        second = tf.summary.scalar("acc", tf.constant(0.5))
    family = tf.summary.scalar("x", tf.constant(1.0), family="fam")
    odd = tf.summary.scalar("a b:c", tf.constant(1.0))
    assert [first.name, second.name] == ["ns/acc:0", "ns/acc_1:0"]
    assert first.op.inputs[0].name == "ns/acc/tags:0"
    assert family.name == "fam/x:0"
    tags = [run(op).value[0].tag for op in (first, second, family, odd)]
    assert tags == ["ns/acc", "ns/acc_1", "fam/fam/x", "a_b_c"]


def test_collections_and_merging() -> None:
    assert tf.summary.merge_all() is None
    a = tf.summary.scalar("a", tf.constant(1.0))
    b = tf.summary.scalar("b", tf.constant(2.0), collections=["mine"])
    merged = tf.summary.merge_all()
    assert merged.name == "Merge/MergeSummary:0"
    assert [v.tag for v in run(merged).value] == ["a"]
    assert [v.tag for v in run(tf.summary.merge([a, b])).value] == ["a", "b"]
    assert tf.summary.merge_all("mine").op.inputs[0] is b
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a"):
        run(tf.summary.merge([a, a]))


def test_scalar_of_any_real_type() -> None:
    for dtype in (tf.float16, tf.float64, tf.int64, tf.uint8, tf.bfloat16):
        value = run(tf.summary.scalar("s", tf.cast(tf.constant(3), dtype))).value[0]
        assert value.simple_value == 3.0


def test_scalar_of_a_wrong_shape() -> None:
    bad = tf.summary.scalar("loss", tf.constant([1.0, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not the same shape.*'loss'"):
        run(bad)


def test_histogram_buckets() -> None:
    histo = run(tf.summary.histogram("h", tf.constant([1.0, 2.0, 2.0, -1.0]))).value[0].histo
    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-1, 2, 4, 4, 10)
    assert list(histo.bucket) == [0, 1, 0, 1, 0, 2, 0]
    assert len(histo.bucket_limit) == 7
    assert histo.bucket_limit[-1] == np.finfo(np.float64).max


def test_histogram_of_nothing_and_of_integers() -> None:
    empty = run(tf.summary.histogram("e", tf.zeros([0]))).value[0].histo
    assert (empty.num, list(empty.bucket)) == (0, [0])
    ints = run(tf.summary.histogram("i", tf.constant([3, -3, 0]))).value[0].histo
    assert (ints.num, ints.sum, sum(ints.bucket)) == (3, 0, 3)


@pytest.mark.parametrize(
    ("bad", "word"), [(np.nan, "Nan"), (np.inf, "Infinity"), (-np.inf, "Infinity")]
)
def test_histogram_of_values_that_are_not_finite(bad: float, word: str) -> None:
    p = tf.placeholder(tf.float32, [2])
    op = tf.summary.histogram("h", p)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{word} in summary histogram for: h"):
        run(op, {p: [1.0, bad]})


def test_every_value_falls_into_its_bucket() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(size=500) * 10.0 ** rng.integers(-14, 22, 500), [0.0, 1e300]]
    )
    histo = summary_format.histogram(values)
    limits = list(histo.bucket_limit)
    assert sum(histo.bucket) == len(values)
    assert limits == sorted(limits)
    below = -np.inf
    for limit, count in zip(limits, histo.bucket, strict=True):
        if count:
            assert ((values >= below) & (values < limit)).sum() == count
        below = limit


def pixels(value: tf.Summary.Value) -> np.ndarray:
    from PIL import Image

    picture = np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))
    return picture.reshape(value.image.height, value.image.width, value.image.colorspace)


def test_image_bytes_are_kept() -> None:
    for depth in (1, 3, 4):
        data = np.random.default_rng(depth).integers(0, 256, (4, 5, 6, depth)).astype(np.uint8)
        values = run(tf.summary.image("im", tf.constant(data))).value
        assert [v.tag for v in values] == [
            f"im{'_' + str(depth // 2) if depth > 1 else ''}/image/{i}" for i in range(3)
        ]
        for value, picture in zip(values, data, strict=False):
            np.testing.assert_array_equal(pixels(value), picture)


def test_one_image_has_no_number() -> None:
    assert (
        run(tf.summary.image("im", tf.zeros([2, 3, 3, 1]), max_outputs=1)).value[0].tag
        == "im/image"
    )


def test_float_images_are_scaled() -> None:
    positive = np.float32([[[[0.0], [1.0]], [[2.0], [np.nan]]]])
    got = pixels(run(tf.summary.image("a", tf.constant(positive))).value[0])
    assert got.ravel().tolist() == [0, 127, 255, 255]
    signed = np.float32([[[[-1.0], [0.0]], [[1.0], [0.5]]]])
    got = pixels(run(tf.summary.image("b", tf.constant(signed))).value[0])
    assert got.ravel().tolist() == [1, 128, 255, 191]
    assert pixels(run(tf.summary.image("c", tf.zeros([1, 2, 2, 3]))).value[0]).sum() == 0


@pytest.mark.parametrize("shape", [[2, 3, 3, 2], [3, 3, 1], [1, 0, 3, 1]])
def test_shapes_that_are_no_images(shape: list[int]) -> None:
    p = tf.placeholder(tf.float32)
    op = tf.summary.image("im", p)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"im|image|Tensor must be 4-D"):
        run(op, {p: np.zeros(shape)})


def test_audio() -> None:
    clip = np.float32([[0.0, 1.0, -1.0, 2.0]])
    value = run(tf.summary.audio("a", tf.constant(clip), 8000.0)).value[0]
    assert value.tag == "a/audio/0"
    assert (value.audio.length_frames, value.audio.num_channels, value.audio.sample_rate) == (
        4,
        1,
        8000,
    )
    with wave.open(io.BytesIO(value.audio.encoded_audio_string)) as file:
        assert file.getframerate() == 8000
        assert struct.unpack("<4h", file.readframes(4)) == (0, 32767, -32768, 32767)


def test_audio_below_one_hertz() -> None:
    value = run(tf.summary.audio("a", tf.zeros([1, 4]), 0.25)).value[0]
    assert value.audio.sample_rate == 0.25
    assert value.audio.encoded_audio_string[:4] == b"RIFF"


def test_text_carries_its_plugin() -> None:
    value = run(tf.summary.text("t", tf.constant(["a", "b"]))).value[0]
    assert value.metadata.plugin_data.plugin_name == "text"
    assert tf.make_ndarray(value.tensor).tolist() == [b"a", b"b"]
    with pytest.raises(ValueError, match="dtype string"):
        tf.summary.text("t", tf.constant(1.0))
