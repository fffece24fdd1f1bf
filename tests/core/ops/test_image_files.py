"""Files of any format."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import opdock as tf

IMAGE = np.add.outer(np.arange(9) * 20, np.arange(7) * 10)[..., None] + np.array([0, 8, 16])
IMAGE = IMAGE.astype(np.uint8)


def saved(kind, count=1):
    out = io.BytesIO()
    frames = [Image.fromarray(IMAGE + 3 * i) for i in range(count)]
    frames[0].save(
        out, kind, **({"save_all": True, "append_images": frames[1:]} if count > 1 else {})
    )
    return out.getvalue()


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_each_format_is_found():
    file = tf.placeholder(tf.string, [])
    out = tf.image.decode_image(file)
    for kind in ("PNG", "BMP"):
        assert np.array_equal(run(out, {file: saved(kind)}), IMAGE)
    assert run(out, {file: saved("JPEG")}).shape == IMAGE.shape
    assert run(out, {file: saved("GIF", 2)}).shape == (2, *IMAGE.shape)
    first = tf.image.decode_image(file, expand_animations=False)
    assert run(first, {file: saved("GIF", 2)}).shape == IMAGE.shape
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to decode bytes as JPEG"):
        run(out, {file: b"nothing of the kind, but long enough"})


def test_types_and_channels():
    png = saved("PNG")
    single = run(tf.image.decode_image(png, dtype=tf.float32))
    np.testing.assert_allclose(single, IMAGE / 255, rtol=1e-5)
    assert run(tf.image.decode_image(png, channels=1)).shape == (9, 7, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="when decoding JPEG images"):
        run(tf.image.decode_image(saved("JPEG"), channels=4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="when decoding GIF images"):
        run(tf.image.decode_image(saved("GIF"), channels=1))
    with pytest.raises(ValueError, match=r"channels must be in \(None, 0, 1, 3, 4\)"):
        tf.image.decode_image(png, channels=2)


def test_is_jpeg():
    file = tf.placeholder(tf.string, [])
    found = tf.image.is_jpeg(file)
    assert run(found, {file: saved("JPEG")})
    assert not run(found, {file: saved("PNG")})
