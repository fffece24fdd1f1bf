"""Small files and strings that unpack to gigabytes, or ask for them, read with 96 MB of memory.

    python -m tests.hostile.bombs

Prints what became of each: the class of the error, or "read".
"""

from __future__ import annotations

import gc
import io
import json
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from PIL import Image

import opdock as tf
from opdock.io import crc32c, protos
from tests.hostile.trial import limit_memory

MEMORY = 96 << 20
GIGABYTES = 4
_BLOCK = 1 << 20


def packed(bits: int, start: bytes = b"") -> bytes:
    """Gigabytes of zeros behind a start, without an end, in a megabyte or four."""
    packer = zlib.compressobj(9, wbits=bits)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (GIGABYTES * (1 << 30) // _BLOCK)


def picture(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 3)).save(out, kind)
    return out.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, *, text: bool = False) -> bytes:
    """A picture whose pixels, or whose comments, unpack to gigabytes."""
    bomb = packed(15)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    whole = picture("PNG")
    if text:
        return whole[:33] + chunk(b"zTXt", b"k\0\0" + bomb) + chunk(b"iCCP", b"k\0\0" + bomb) + (
            whole[33:]
        )  # fmt: skip
    return whole[:8] + header + chunk(b"IDAT", bomb) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    data = bytearray(picture("JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def gif(frames: int) -> bytes:
    """Two thousand pixels in square, again and again."""
    out = io.BytesIO()
    first, second = (Image.new("P", (2000, 2000), i) for i in range(2))
    first.save(out, "GIF", save_all=True, append_images=[second])
    data = out.getvalue()
    at = data.rindex(b"\x21\xf9")
    return data[:at] + data[at:-1] * frames + b";"


def bmp(width: int, height: int) -> bytes:
    return struct.pack("<2sIHHIIiiHH", b"BM", 0, 0, 0, 54, 40, width, height, 1, 24) + bytes(40)


def record(bits: int) -> bytes:
    """A record of twice the gigabytes that there are."""
    length = struct.pack("<Q", 2 * GIGABYTES << 30)
    return packed(bits, length + struct.pack("<I", crc32c.masked(length)))


def tensor(*dims: int) -> bytes:
    """One value for all of a shape."""
    made = protos.TensorProto(dtype=1, float_val=[1.0])
    made.tensor_shape.dim.extend([made.tensor_shape.Dim(size=d) for d in dims])
    return bytes(made.SerializeToString())


def element(make: Callable[[str], Any], data: bytes) -> None:
    """The first element of a dataset of a file."""
    with tempfile.NamedTemporaryFile() as file, tf.Graph().as_default():
        file.write(data)
        file.flush()
        following = tf.data.make_one_shot_iterator(make(file.name)).get_next()
        with tf.Session() as session:
            session.run(following)


def op(make: Callable[[tf.Tensor], Any], data: bytes) -> None:
    """What an op makes of a string."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.string, [])
        session.run(make(given), {given: data})


def _files() -> Iterator[tuple[str, Callable[[], Any]]]:
    d, huge = tf.data, 1 << 40
    length = d.FixedLengthRecordDataset
    readers: dict[str, Callable[[str], Any]] = {
        "line": lambda f: d.TextLineDataset(f, "GZIP"),
        "fixed length": lambda f: length(f, huge, compression_type="GZIP"),
        "footer": lambda f: length(f, 8, footer_bytes=huge, compression_type="GZIP"),
        "csv": lambda f: d.experimental.CsvDataset(f, [""], compression_type="GZIP"),
    }
    for name, reader in readers.items():
        yield name, lambda reader=reader: element(reader, packed(31))
    yield "gzip record", lambda: element(lambda f: d.TFRecordDataset(f, "GZIP"), record(31))
    yield "zlib record", lambda: element(lambda f: d.TFRecordDataset(f, "ZLIB"), record(15))
    yield "plain record", lambda: element(lambda f: length(f, huge), b"short")


def _strings() -> Iterator[tuple[str, Callable[[], Any]]]:
    length, image = tf.strings.length, tf.image
    for kind, bits in (("ZLIB", 15), ("GZIP", 31)):
        yield (
            f"decode_compressed {kind}",
            lambda k=kind, b=bits: op(lambda s: length(tf.io.decode_compressed(s, k)), packed(b)),
        )
    pictures = {
        "png of many pixels": (image.decode_png, lambda: png(60000, 60000)),
        "png of too many bytes": (image.decode_png, lambda: png(3, 3)),
        "png of a comment": (image.decode_png, lambda: png(3, 3, text=True)),
        "jpeg of many pixels": (image.decode_jpeg, lambda: jpeg(65500, 65500)),
        "jpeg of some pixels": (image.decode_jpeg, lambda: jpeg(20000, 20000)),
        "gif of many frames": (image.decode_gif, lambda: gif(100)),
        "bmp of many pixels": (image.decode_bmp, lambda: bmp(10000, 10000)),
    }
    for name, (decode, data) in pictures.items():
        yield name, lambda decode=decode, data=data: op(decode, data())
    yield (
        "tensor",
        lambda: op(lambda s: tf.io.parse_tensor(s, tf.float32), tensor(1 << 20, 1 << 20)),
    )
    yield (
        "tensor beyond all",
        lambda: op(lambda s: tf.io.parse_tensor(s, tf.float32), tensor(1 << 62, 1 << 62, 0)),
    )
    yield "width", lambda: op(lambda s: tf.as_string(tf.strings.to_number(s), width=1 << 30), b"3")
    yield "nested json", lambda: op(tf.io.decode_json_example, b"[" * 100_000)


def main() -> None:
    """Reads all of them."""
    tf.logging.set_verbosity(tf.logging.FATAL)
    op(tf.strings.to_number, b"3")  # all that a first step loads
    op(tf.image.decode_image, picture("PNG"))
    limit_memory(MEMORY)
    for name, read in (*_files(), *_strings()):
        try:
            read()
            became = "read"
        except Exception as e:
            became = type(e).__name__ if getattr(e, "message", "") else f"{e!r}, without words"
        gc.collect()  # an error holds what was read, and frames that hold it
        json.dump([name, became], sys.stdout)
        print(flush=True)


if __name__ == "__main__":
    main()
