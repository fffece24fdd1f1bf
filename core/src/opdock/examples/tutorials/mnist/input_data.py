"""`tf.examples.tutorials.mnist.input_data`: reads the digits' files, and hands them out in batches.

The files are of the format IDX: a magic number, the sizes as big-endian integers, the bytes. What
is not in the folder is fetched first. Batches come in the order of TensorFlow's class: NumPy's
global generator, seeded by the graph's seed, shuffles each epoch.
"""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import urllib.request
import zlib
from collections import namedtuple
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.graph.nodes.seeds import get_seed
from opdock.io.files import as_path, atomic_write
from opdock.values import holds

__all__ = [
    "DEFAULT_SOURCE_URL", "DataSet", "Dataset", "Datasets", "dense_to_one_hot", "extract_images",
    "extract_labels", "load_mnist", "maybe_download", "read_data_sets",
]  # fmt: skip

DEFAULT_SOURCE_URL: Final = "https://storage.googleapis.com/cvdf-datasets/mnist/"
Dataset = namedtuple("Dataset", ["data", "target"])  # noqa: PYI024 - the libraries' own records
Datasets = namedtuple("Datasets", ["train", "validation", "test"])  # noqa: PYI024

_IMAGES: Final = 2051
_LABELS: Final = 2049
_FAKE_EXAMPLES: Final = 10000


def maybe_download(filename: str, work_directory: Any, source_url: str) -> str:
    """The path of a file in a folder; where it is not there it is fetched and then put in place.

    Raises:
        UnavailableError: it is neither there nor at its address.
    """
    folder = as_path(work_directory)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, filename)
    unpacked = path.removesuffix(".gz")
    if os.path.exists(path) or not os.path.exists(unpacked):
        if not os.path.exists(path):
            _download(source_url, path)
        return path
    return unpacked


def _download(url: str, path: str) -> None:
    if not url.startswith(("http://", "https://", "file://")):
        raise errors.InvalidArgumentError(None, None, f"not an address to fetch from: {url!r}")
    try:
        with urllib.request.urlopen(url) as answer, atomic_write(path) as file:  # noqa: S310
            shutil.copyfileobj(answer, file)
    except OSError as e:
        text = f"{path} is not there, and cannot be fetched from {url}: {e}"
        raise errors.UnavailableError(None, None, text) from e
    print("Successfully downloaded", os.path.basename(path), os.path.getsize(path), "bytes.")


def extract_images(f: Any) -> np.ndarray[Any, Any]:
    """Images, [count, rows, columns, 1] of bytes, of an open file.

    Raises:
        ValueError: the file is not one of images, or is cut short.
    """
    return _read(f, _IMAGES, 3)[..., np.newaxis]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> np.ndarray[Any, Any]:
    """Labels, [count] of bytes or [count, classes] of ones and zeros, of an open file.

    Raises:
        ValueError: the file is not one of labels, or is cut short.
    """
    labels = _read(f, _LABELS, 1)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> np.ndarray[Any, Any]:
    """Labels as rows with a one at their place; IndexError for a label that has none."""
    labels = np.asarray(labels_dense).ravel()
    found = np.zeros((len(labels), num_classes))
    found[np.arange(len(labels)), labels] = 1
    return found


def _read(f: Any, magic: int, rank: int) -> np.ndarray[Any, Any]:
    """The array of an IDX file, compressed or not."""
    name = getattr(f, "name", "file")
    print("Extracting", name)
    start = f.read(2)
    f.seek(0)
    stream = gzip.GzipFile(fileobj=f) if start == b"\x1f\x8b" else f
    kind = "image" if magic == _IMAGES else "label"
    try:
        head = stream.read(4 + 4 * rank)
        data = stream.read()  # as much as there is, whatever the head says
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise ValueError(f"MNIST {kind} file {name} is damaged: {e}") from None
    if len(head) < 4 + 4 * rank:
        raise ValueError(f"MNIST {kind} file {name} ends within its head")
    found, *shape = struct.unpack(f">{rank + 1}I", head)
    if found != magic:
        raise ValueError(f"Invalid magic number {found} in MNIST {kind} file: {name}")
    size = int(np.prod(shape, dtype=object))
    if len(data) < size or not holds(shape):
        raise ValueError(f"MNIST {kind} file {name} has {len(data)} bytes for shape {shape}")
    return np.frombuffer(data, np.uint8, size).reshape(shape)


class DataSet:
    """Images and labels, handed out in batches.

    Args:
        images: [count, rows, columns, 1] of bytes.
        labels: [count] or [count, classes].
        fake_data: hand out made-up examples, without any of the above.
        one_hot: whether made-up labels are rows.
        dtype: float32 for numbers between 0 and 1, uint8 for the bytes.
        reshape: give each image as one row.
        seed: seed of the order; the graph's by default.

    Raises:
        TypeError: the type is another.
        ValueError: there are not as many labels as images.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        graph_seed, op_seed = get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)  # noqa: NPY002
        wanted = dtypes.as_dtype(dtype).base_dtype
        if wanted not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {wanted!r}, expected uint8 or float32")
        self.one_hot = one_hot
        self._num_examples = _FAKE_EXAMPLES if fake_data else len(images)
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(
                    f"images.shape: {images.shape} labels.shape: {labels.shape}: not as many"
                )
            if reshape:
                images = images.reshape(len(images), int(np.prod(images.shape[1:])))
            if wanted == dtypes.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images, self._labels = images, labels
        self._epochs_completed = 0
        self._index_in_epoch = 0

    @property
    def images(self) -> Any:
        """All images, in this epoch's order."""
        return self._images

    @property
    def labels(self) -> Any:
        """All labels, in this epoch's order."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many examples there are."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often all have been handed out."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """The next images and labels; what an epoch lacks for a batch comes from the next one."""
        if fake_data:
            label: Any = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if shuffle and start == 0 and self._epochs_completed == 0:
            self._shuffle()
        end = start + batch_size
        if end <= self._num_examples:
            self._index_in_epoch = end
            return self._images[start:end], self._labels[start:end]
        rest = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._index_in_epoch = end - self._num_examples
        more = self._images[: self._index_in_epoch], self._labels[: self._index_in_epoch]
        images, labels = (np.concatenate(parts, axis=0) for parts in zip(rest, more))
        return images, labels

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)  # noqa: NPY002 - the generator of TensorFlow's class
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: Any,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Any:
    """The digits in a folder, split in train, validation and test.

    Args:
        train_dir: the folder with `train-images-idx3-ubyte.gz` and its like; what is absent is
            fetched into it.
        fake_data: made-up examples; no file is read.
        one_hot: labels as rows of ones and zeros.
        dtype: float32 or uint8.
        reshape: each image as one row.
        validation_size: how many of the training examples, the first, are for validation.
        seed: seed of the order.
        source_url: where to fetch from.

    Raises:
        ValueError: there are not as many examples as `validation_size`, or a file is broken.
        UnavailableError: a file is neither there nor at its address.
    """
    options: dict[str, Any] = {"dtype": dtype, "seed": seed}
    if fake_data:
        empty = [DataSet([], [], fake_data=True, one_hot=one_hot, **options) for _ in range(3)]
        return Datasets(*empty)
    found = {}
    for part in ("train", "t10k"):
        image_file = _file(f"{part}-images-idx3-ubyte.gz", train_dir, source_url)
        label_file = _file(f"{part}-labels-idx1-ubyte.gz", train_dir, source_url)
        with open(image_file, "rb") as pixels, open(label_file, "rb") as classes:
            found[part] = extract_images(pixels), extract_labels(classes, one_hot=one_hot)
    images, labels = found["train"]
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    n = validation_size
    parts = (images[n:], labels[n:]), (images[:n], labels[:n]), found["t10k"]
    return Datasets(*(DataSet(i, l, reshape=reshape, **options) for i, l in parts))


def _file(name: str, folder: Any, source_url: str) -> str:
    return maybe_download(name, folder, (source_url or DEFAULT_SOURCE_URL) + name)


def load_mnist(train_dir: Any = "MNIST-data") -> Any:
    """`read_data_sets` with its defaults."""
    return read_data_sets(train_dir)
