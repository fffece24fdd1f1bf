"""Input pipelines: a step takes the next batch of what files or arrays hold, over and over.

opdock writes the files, before any library is measured; all libraries read the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, normal, random, weights

CALLS = 2  # elements that a map works on at once


def endless(tf: Any, dataset: Any) -> Any:
    """The next batch, made ahead."""
    return tf.data.make_one_shot_iterator(dataset.prefetch(1)).get_next()


def turns(count: int, batch: int) -> list[np.ndarray]:
    """The numbers of the elements in the first batches."""
    return [np.arange(i * batch, (i + 1) * batch) % count for i in range(CHECKED)]


# ---------------------------------------------------------------- Examples
def examples_data(folder: str, examples: int, width: int, batch: int) -> SimpleNamespace:
    """Vectors with a label each."""
    rng = random(71)
    path = str(Path(folder) / "examples.tfrecord")
    return SimpleNamespace(
        path=path, values=normal(rng, examples, width), labels=rng.randint(0, 10, examples),
        batch=batch,
    )  # fmt: skip


def examples_files(data: SimpleNamespace) -> None:
    """A TFRecord file."""
    import opdock as tf

    with tf.python_io.TFRecordWriter(data.path) as writer:
        for i, (values, label) in enumerate(zip(data.values, data.labels)):
            made = tf.train.Example()
            features = made.features.feature
            features["values"].float_list.value.extend(values)
            features["label"].int64_list.value.append(label)
            features["name"].bytes_list.value.append(b"example %d" % i)
            writer.write(made.SerializeToString())


def examples_program(tf: Any, data: SimpleNamespace) -> Program:
    """Each is parsed, then they are batched."""
    features = {
        "values": tf.FixedLenFeature([data.values.shape[1]], tf.float32),
        "label": tf.FixedLenFeature([], tf.int64),
        "name": tf.FixedLenFeature([], tf.string),
    }
    dataset = tf.data.TFRecordDataset(data.path).repeat()
    dataset = dataset.map(lambda text: tf.parse_single_example(text, features), CALLS)
    batch = endless(tf, dataset.batch(data.batch))
    return Program([batch["values"], batch["label"]])


def examples_answer(data: SimpleNamespace) -> list[Any]:
    """What was written."""
    found = turns(len(data.values), data.batch)
    return [[data.values[i], data.labels[i]] for i in found]


# ---------------------------------------------------------------- images
def images_data(
    folder: str, images: int, side: int, crop: int, batch: int, classes: int, channels: int = 0,
    pool: int = 4,
) -> SimpleNamespace:  # fmt: skip
    """Waves of colour, where to cut them, and with channels a convolutional network."""
    rng = random(72)
    at = np.linspace(0, 1, side, dtype=np.float32)
    waves = rng.uniform(1, 5, (images, 2, 3)).astype(np.float32)
    angles = at[None, :, None, None] * waves[:, None, None, 0]
    angles = angles + at[None, None, :, None] * waves[:, None, None, 1]
    grain = normal(rng, images, side, side, 3, scale=0.01)
    flat = (-(-(crop // pool) // 2)) ** 2 * channels
    network = [
        weights(rng, 3, 3, 3, channels), np.zeros(channels, np.float32),
        weights(rng, flat, classes), np.zeros(classes, np.float32),
    ] if channels else []  # fmt: skip
    return SimpleNamespace(
        paths=[str(Path(folder) / f"{i}.jpg") for i in range(images)],
        pictures=np.clip(0.5 + 0.4 * np.sin(angles) + grain, 0, 1),
        corners=rng.randint(0, side - crop + 1, (images, 2)).astype(np.int32),
        flips=rng.uniform(size=images) < 0.5,
        labels=rng.randint(0, classes, images).astype(np.int32),
        crop=crop, batch=batch, rate=0.01, parameters=network, pool=pool,
    )  # fmt: skip


def images_files(data: SimpleNamespace) -> None:
    """A JPEG file each."""
    import opdock as tf

    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.uint8, data.pictures.shape[1:])
        text = tf.image.encode_jpeg(image, quality=95)
        for path, picture in zip(data.paths, data.pictures):
            pixels = np.round(picture * 255).astype(np.uint8)
            Path(path).write_bytes(session.run(text, {image: pixels}))


def image_batches(tf: Any, data: SimpleNamespace) -> Any:
    """Files are read, decoded, cropped, flipped, and batched with their labels."""
    crop = data.crop

    def load(path: Any, corner: Any, flip: Any, label: Any) -> Any:
        image = tf.image.decode_jpeg(tf.read_file(path), channels=3)
        image = tf.image.crop_to_bounding_box(image, corner[0], corner[1], crop, crop)
        image.set_shape([crop, crop, 3])
        image = tf.cond(flip, lambda: tf.image.flip_left_right(image), lambda: image)
        return tf.cast(image, tf.float32) / 255.0, label

    columns = (data.paths, data.corners, data.flips, data.labels)
    dataset = tf.data.Dataset.from_tensor_slices(columns).repeat()
    return endless(tf, dataset.map(load, CALLS).batch(data.batch))


def images_program(tf: Any, data: SimpleNamespace) -> Program:
    """The batches alone."""
    return Program(list(image_batches(tf, data)))


def cut(data: SimpleNamespace, numbers: np.ndarray) -> np.ndarray:
    """The parts of these pictures."""
    out = []
    for i in numbers:
        y, x = data.corners[i]
        part = data.pictures[i, y : y + data.crop, x : x + data.crop]
        out.append(part[:, ::-1] if data.flips[i] else part)
    return np.stack(out)


def images_answer(data: SimpleNamespace) -> list[Any]:
    """The pictures, which the files hold but for what JPEG leaves out."""
    found = turns(len(data.paths), data.batch)
    return [[cut(data, i), data.labels[i]] for i in found]


# ---------------------------------------------------------------- training
def trained(tf: Any, data: SimpleNamespace, images: Any, labels: Any) -> Program:
    """A step on these images: means of squares, a convolution, a maximum of 2x2, a dense layer."""
    kernel, bias, w, b = (tf.Variable(p) for p in data.parameters)
    square = [1, data.pool, data.pool, 1]
    h = tf.nn.avg_pool(images, square, square, "VALID") if data.pool > 1 else images
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, kernel, [1, 1, 1, 1], "SAME"), bias))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    logits = tf.matmul(tf.reshape(h, [-1, w.shape[0]]), w) + b
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train = tf.train.GradientDescentOptimizer(data.rate).minimize(loss)
    return Program([train, loss])


def fed_program(tf: Any, data: SimpleNamespace) -> Program:
    """On the images of the files."""
    return trained(tf, data, *image_batches(tf, data))


def unfed_program(tf: Any, data: SimpleNamespace) -> Program:
    """On images that are there: what a step takes if input takes nothing."""
    numbers = np.arange(data.batch) % len(data.labels)
    images = tf.Variable(cut(data, numbers), trainable=False)
    return trained(tf, data, images, tf.constant(data.labels[numbers]))


def trained_answer(data: SimpleNamespace, batches: list[np.ndarray]) -> list[Any]:
    """The same in NumPy."""

    def loss(p: Any, x: np.ndarray, y: np.ndarray) -> float:
        n, side, pool = len(x), data.crop // data.pool, data.pool
        h = x[:, : side * pool, : side * pool].reshape(n, side, pool, side, pool, 3)
        h = h.mean(axis=(2, 4))
        h = reference.max_pool(reference.relu(reference.conv(h, p[0]) + p[1]), 2, 2)
        return reference.cross_entropy(h.reshape(n, -1) @ p[2] + p[3], y)

    fed = [(cut(data, i), data.labels[i]) for i in batches]
    return reference.train(loss, data.parameters, reference.descent(data.rate), fed, CHECKED)


def fed_answer(data: SimpleNamespace) -> list[Any]:
    """Batch after batch."""
    return trained_answer(data, turns(len(data.labels), data.batch))


def unfed_answer(data: SimpleNamespace) -> list[Any]:
    """The first batch each time."""
    return trained_answer(data, turns(len(data.labels), data.batch)[:1])


# ---------------------------------------------------------------- arrays, lines
def rows_data(rows: int, width: int, batch: int, folder: str = "") -> SimpleNamespace:
    """Rows of numbers with a label each."""
    rng = random(73)
    values, labels = normal(rng, rows, width), rng.randint(0, 10, rows)
    path = str(Path(folder) / "lines.csv")
    return SimpleNamespace(values=values, labels=labels, batch=batch, path=path)


def slices_program(tf: Any, data: SimpleNamespace) -> Program:
    """Shuffled, scaled, batched: a step is one time through all."""
    rows = len(data.values)
    dataset = tf.data.Dataset.from_tensor_slices((data.values, data.labels)).shuffle(rows).repeat()
    dataset = dataset.map(lambda x, y: (x * 2 - 1, tf.one_hot(y, 10)))
    batch = endless(tf, dataset.batch(data.batch))
    session = tf.Session()

    def step(clock: Callable[[], float]) -> tuple[float, Any]:
        start = clock()
        found = [session.run(batch) for _ in range(rows // data.batch)]
        seconds = clock() - start
        return seconds, [np.sum([part.sum(axis=0) for part in p], axis=0) for p in zip(*found)]

    return Program(step=step)


def slices_answer(data: SimpleNamespace) -> list[Any]:
    """Sums do not depend on the order."""
    values = (data.values.astype(np.float64) * 2 - 1).sum(axis=0)
    return [[values, np.bincount(data.labels, minlength=10)]] * CHECKED


def lines_files(data: SimpleNamespace) -> None:
    """Commas between numbers."""
    with open(data.path, "w", encoding="utf-8") as file:
        file.writelines(
            ",".join([str(label), *(f"{v:.6f}" for v in values)]) + "\n"
            for label, values in zip(data.labels, data.values)
        )


def lines_program(tf: Any, data: SimpleNamespace) -> Program:
    """Each line is parsed, then they are batched."""
    defaults = [[0], *[[0.0]] * data.values.shape[1]]

    def parse(line: Any) -> Any:
        label, *values = tf.decode_csv(line, defaults)
        return tf.stack(values), label

    dataset = tf.data.TextLineDataset(data.path).repeat().map(parse, CALLS)
    return Program(list(endless(tf, dataset.batch(data.batch))))


def lines_answer(data: SimpleNamespace) -> list[Any]:
    """What was written."""
    found = turns(len(data.values), data.batch)
    return [[data.values[i], data.labels[i]] for i in found]


IMAGES = {"images": 256, "side": 256, "crop": 224, "batch": 64, "classes": 10}
FEW_IMAGES = {"images": 5, "side": 32, "crop": 12, "batch": 3, "classes": 3}


SMALL = {"channels": 16, "pool": 4}
LARGE = {"channels": 16, "pool": 1}


def on_images(
    name: str, about: str, program: Any, answer: Any, tolerance: float, network: dict[str, int]
) -> Workload:
    """One of the workloads on JPEG files, with a network of some channels or without."""
    sizes = IMAGES | network
    few = FEW_IMAGES | (network and network | {"channels": 2})
    return Workload(
        name, about, sizes, few, images_data, program, answer, tolerance, changes=True,
        host=True, section="pipelines", files=images_files,
    )  # fmt: skip


WORKLOADS = (
    Workload(
        "input_examples",
        "{batch} Examples of {width} floats, a label and a name: read, parsed, batched",
        {"examples": 20_000, "width": 10, "batch": 100},
        {"examples": 7, "width": 3, "batch": 4},
        examples_data,
        examples_program,
        examples_answer,
        changes=True,
        host=True,
        section="pipelines",
        files=examples_files,
    ),
    on_images(
        "input_images",
        "{batch} JPEG files of {side}x{side}: decoded, cropped to {crop}, flipped, batched",
        images_program,
        images_answer,
        0.1,
        {},
    ),
    Workload(
        "input_slices",
        "{rows:,} rows of {width} floats in memory: shuffled, scaled, labels one-hot, {batch} a "
        "batch; a step is one time through all",
        {"rows": 20_000, "width": 32, "batch": 100},
        {"rows": 12, "width": 3, "batch": 4},
        rows_data,
        slices_program,
        slices_answer,
        host=True,
        section="pipelines",
    ),
    Workload(
        "input_lines",
        "{batch} lines of a label and {width} floats: read, parsed, batched",
        {"rows": 20_000, "width": 4, "batch": 100},
        {"rows": 7, "width": 3, "batch": 4},
        rows_data,
        lines_program,
        lines_answer,
        changes=True,
        host=True,
        section="pipelines",
        files=lines_files,
    ),
    on_images(
        "input_train",
        "a training step of a small convolutional network on the images of input_images",
        fed_program,
        fed_answer,
        0.01,
        SMALL,
    ),
    on_images(
        "input_none",
        "the same step on images that are there",
        unfed_program,
        unfed_answer,
        1e-4,
        SMALL,
    ),
    on_images(
        "input_train_large",
        "a step that takes longer than its batch: on the images as large as they are",
        fed_program,
        fed_answer,
        0.01,
        LARGE,
    ),
    on_images(
        "input_none_large",
        "the same step on images that are there",
        unfed_program,
        unfed_answer,
        1e-4,
        LARGE,
    ),
)
