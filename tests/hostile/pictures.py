"""Hostile pictures and sounds."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
from PIL import Image

import opdock as tf
from tests.hostile.base import Format, Mutate, each, feed
from tests.hostile.mutations import mutate_bytes


def _pictures(*kinds: str) -> Sequence[bytes]:
    rng = np.random.RandomState(0)
    pixels = rng.randint(0, 255, (9, 13, 3)).astype(np.uint8)
    found = []
    for kind in kinds:
        options = dict[str, Any](progressive=True) if kind == "JPEG+" else {}
        modes = {
            "PNG": ("RGB", "RGBA", "L", "P", "1"), "GIF": ("P",), "JPEG": ("RGB", "L", "CMYK"),
        }.get(kind, ("RGB", "L"))  # fmt: skip
        for mode in modes:
            out = io.BytesIO()
            picture = Image.fromarray(pixels).convert(mode)
            if kind == "GIF":
                options = {"save_all": True, "append_images": [picture.rotate(90)], "loop": 0}
            picture.save(out, kind.rstrip("+"), **options)
            found.append(out.getvalue())
    return [*found, *_deep_pngs()] if "PNG" in kinds else found


def _deep_pngs() -> Sequence[bytes]:
    """Pictures of 16 bits, of one to four channels."""
    rng = np.random.RandomState(1)
    with tf.Graph().as_default(), tf.Session() as session:
        return [
            session.run(tf.image.encode_png(rng.randint(0, 1 << 16, (7, 5, n)).astype(np.uint16)))
            for n in range(1, 5)
        ]


@cache
def _decode(*names: str) -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        steps = [getattr(tf.image, name)(data) for name in names]
        if "decode_png" in names:
            steps += [tf.image.decode_png(data, n, tf.uint16) for n in (0, 1, 3)]
        calls = [tf.Session().make_callable(step, [data]) for step in steps]
    return partial(each, calls)


def _mutate_png(rng: Random, data: bytes) -> bytes:
    """Bytes; or one chunk's, with a sum that fits, so that what is behind the sum is tried."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    at, chunks = 8, list[tuple[bytes, bytes]]()
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += size + 12
    which = rng.randrange(len(chunks))
    kind, body = chunks[which]
    if kind == b"IDAT" and rng.random() < 0.6:
        body = zlib.compress(mutate_bytes(rng, zlib.decompress(body)))
    else:
        body = mutate_bytes(rng, body)
    chunks[which] = (kind, body)
    if rng.random() < 0.2:
        chunks.insert(rng.randrange(len(chunks)), rng.choice(chunks))
    sums = (struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(b)) + k + b + s for (k, b), s in zip(chunks, sums)
    )


def _wav_seeds() -> Sequence[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        tone = np.sin(np.arange(60).reshape(30, 2)).astype(np.float32)
        return [session.run(tf.audio.encode_wav(tone, 8000))]


@cache
def _wav_step() -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        steps = [tf.audio.decode_wav(data), tf.audio.decode_wav(data, 1, 50)]
        calls = [tf.Session().make_callable(step, [data]) for step in steps]
    return partial(each, calls)


def _image(mutate: Mutate, *kinds: str, decoders: tuple[str, ...]) -> Format:
    step = partial(_decode, *decoders, "decode_image")
    return Format(partial(_pictures, *kinds), mutate, feed(step))


FORMATS = {
    "jpeg": _image(mutate_bytes, "JPEG", "JPEG+", decoders=("decode_jpeg",)),
    "png": _image(_mutate_png, "PNG", decoders=("decode_png",)),
    "gif": _image(mutate_bytes, "GIF", decoders=("decode_gif",)),
    "bmp": _image(mutate_bytes, "BMP", decoders=("decode_bmp",)),
    "wav": Format(_wav_seeds, mutate_bytes, feed(_wav_step)),
}
