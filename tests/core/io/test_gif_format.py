"""GIF images: frames over frames, and damage."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from opdock.errors import InvalidArgumentError
from opdock.io.gif_format import decode_gif

RED, BLUE = (200, 10, 20), (30, 40, 250)


def frame(left, top, width, height, value, palette=b""):
    """An image of one number, by codes of three bits that never use the table."""
    codes = []
    for i in range(width * height):
        # A clear before every other pixel keeps codes at three bits.
        codes += ([4] if i % 2 == 0 else []) + [value]
    codes.append(5)
    bits = 0
    for i, code in enumerate(codes):
        bits |= code << 3 * i
    packed = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    place = b"".join(v.to_bytes(2, "little") for v in (left, top, width, height))
    flags = bytes([0x80 | 1]) if palette else b"\0"
    return b"\x2c" + place + flags + palette + b"\2" + bytes([len(packed)]) + packed + b"\0"


def file(*frames, width=4, height=3, palette=bytes((*RED, *BLUE, 1, 2, 3, 4, 5, 6))):
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    flags = bytes([0x80 | 1]) if palette else b"\0"
    return b"GIF89a" + size + flags + b"\0\0" + palette + b"".join(frames) + b"\x3b"


def test_pillow_writes_what_is_read():
    rng = np.random.default_rng(1)
    frames = [Image.fromarray(rng.integers(0, 255, (9, 7), np.uint8)) for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], disposal=1)
    want = np.stack([np.repeat(np.asarray(f)[..., None], 3, axis=2) for f in frames])
    assert np.array_equal(decode_gif(out.getvalue()), want)


def test_frames_have_the_size_of_the_largest():
    frames = decode_gif(file(frame(0, 0, 4, 3, 0), frame(1, 1, 2, 1, 1), frame(3, 2, 2, 2, 1)))
    assert frames.shape == (3, 3, 4, 3)
    assert (frames[0] == RED).all()
    want = np.broadcast_to(np.array(RED), (3, 4, 3)).copy()
    want[1, 1:3] = BLUE
    assert np.array_equal(frames[1], want)
    want[2, 3] = BLUE
    assert np.array_equal(frames[2], want)


def test_frames_may_have_colors_of_their_own():
    own = bytes((7, 8, 9, *RED, *RED, *RED))
    frames = decode_gif(file(frame(0, 0, 4, 3, 0), frame(0, 0, 4, 3, 0, own)))
    assert (frames[1] == (7, 8, 9)).all()
    with pytest.raises(InvalidArgumentError, match="missing color map for frame 0"):
        decode_gif(file(frame(0, 0, 4, 3, 0), palette=b""))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (file(), "gif file does not contain any image"),
        (file(frame(1, 0, 4, 3, 0)), "the first frame does not fill the canvas"),
        (file(frame(0, 0, 4, 3, 0))[:-8], "failed to slurp gif file: Image EOF detected"),
        (b"GIF80a" + file()[6:], "Data is not in GIF format"),
        (file()[:-1] + b"?", "Wrong record type detected"),
    ],
)
def test_what_is_broken_says_so(data, problem):
    with pytest.raises(InvalidArgumentError, match=rf"Invalid GIF data \(size {len(data)}\), .*"):
        decode_gif(data)
    with pytest.raises(InvalidArgumentError, match=problem):
        decode_gif(data)


def test_sizes_are_checked_before_memory_is_taken():
    small = frame(0, 0, 4, 3, 0)
    huge = small[:5] + b"\xff\xff\xff\xff" + small[9:]
    with pytest.raises(InvalidArgumentError, match="Image EOF detected before image complete"):
        decode_gif(file(huge))
