"""What `opdock records` knows of Examples: how they are shown, and how images become some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from opdock import errors
from opdock.io import files, protos, records
from opdock.io.image_format import decode_bmp, decode_image

_FORMATS: Final[dict[str, str]] = {
    ".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".gif": "GIF", ".bmp": "BMP",
}  # fmt: skip


# ---------------------------------------------------------------- shown
@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of an Example.

    Attributes:
        name: its key.
        kind: "bytes", "float", "int64" or "none".
        values: what it holds.
    """

    name: str
    kind: str
    values: tuple[Any, ...]

    def text(self, limit: int) -> str:
        """The feature in a line, with so many values at most."""
        shown = [_shown(v) for v in self.values[:limit]]
        more = len(self.values) - len(shown)
        return f"{self.kind} [{', '.join(shown)}{f', {more} more' if more else ''}]"

    def plain(self, limit: int) -> dict[str, Any]:
        """The feature as plain data, with so many values at most; bytes as Latin-1."""
        values = [v.decode("latin-1") if isinstance(v, bytes) else v for v in self.values[:limit]]
        return {"name": self.name, "kind": self.kind, "count": len(self.values), "values": values}


def _shown(value: Any) -> str:
    if not isinstance(value, bytes):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    text = repr(value[:32])
    return text if len(value) <= 32 else f"{text}... ({len(value)} bytes)"


def features_of(record: bytes) -> list[Feature] | None:
    """The features of an Example by name; None for a record that is none, or has no features."""
    from google.protobuf.message import DecodeError

    try:
        example = protos.Example.FromString(record)
    except DecodeError:
        return None
    found = []
    for name in sorted(example.features.feature):
        feature = example.features.feature[name]
        kind = feature.WhichOneof("kind")
        values = () if kind is None else tuple(getattr(feature, kind).value)
        found.append(Feature(name, "none" if kind is None else kind.removesuffix("_list"), values))
    return found or None


# ---------------------------------------------------------------- made
@dataclass(frozen=True, slots=True)
class Images:
    """The images of a folder.

    Attributes:
        folder: where they are.
        files: in the order in which they are written.
        labels: the names of the classes, in the order of their numbers.
    """

    folder: Path
    files: list[Path]
    labels: list[str]

    @classmethod
    def found(cls, folder: Path, seed: int) -> Self:
        """All images below a folder, mixed, so that each shard has some of each class."""
        names = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _FORMATS)
        labels = sorted({p.relative_to(folder).parts[0] for p in names if p.parent != folder})
        order = np.random.default_rng(seed).permutation(len(names))
        return cls(folder, [names[i] for i in order], labels)

    def write(
        self, output: Path, shards: int, compression: str, done: Callable[[], None]
    ) -> Iterator[Path]:
        """Writes the images, and the names of the classes.

        Args:
            output: what the names of the files begin with.
            shards: how many files.
            compression: of the files.
            done: called after each image.

        Yields:
            Each file when it is complete.

        Raises:
            InvalidArgumentError: an image is damaged; the error has its name.
        """
        for shard in range(shards):
            path = f"{output}-{shard:05d}-of-{shards:05d}"
            with records.new_file(path, compression) as writer:
                for image in self.files[shard::shards]:
                    writer.write(self._example(image))
                    done()
            yield Path(path)
        if self.labels:
            path = f"{output}-labels.txt"
            files.write_file(path, "".join(f"{label}\n" for label in self.labels).encode())
            yield Path(path)

    def _example(self, path: Path) -> bytes:
        data, name = files.read_file(str(path)), path.relative_to(self.folder)
        kind = _FORMATS[path.suffix.lower()]
        try:
            pixels = decode_bmp(data) if kind == "BMP" else decode_image(data, kind)
        except errors.InvalidArgumentError as e:
            raise errors.InvalidArgumentError(None, None, f"{path}: {e.message}") from None
        height, width, channels = pixels.shape[-3:]
        features: dict[str, bytes | int] = {
            "image/encoded": data, "image/format": kind.encode(),
            "image/filename": name.as_posix().encode(),
            "image/height": height, "image/width": width, "image/channels": channels,
        }  # fmt: skip
        if len(name.parts) > 1:
            features["image/class/label"] = self.labels.index(name.parts[0])
            features["image/class/text"] = name.parts[0].encode()
        example = protos.Example()
        for key, value in features.items():
            feature = example.features.feature[key]
            held = feature.bytes_list if isinstance(value, bytes) else feature.int64_list
            held.value.append(value)
        return bytes(example.SerializeToString(deterministic=True))
