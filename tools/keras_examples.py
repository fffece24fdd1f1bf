"""Runs the examples of Keras 2.2.5 on opdock as they were published, on made-up data.

    python tools/keras_examples.py FOLDER [NAME]...

FOLDER is `examples` in a checkout of keras-team/keras at 2.2.5; `make libraries` has made the
environment with Keras. Each example runs under `opdock run`, not a line of it changed: what is
changed is around it. Data sets are small and made up, since there may be no network, and are such
that they can be learnt. Trainings have few epochs. In the end the last model that was trained is
saved in HDF5, loaded, and has to predict the same. Models are not drawn.
"""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OPDOCK = Path(__file__).resolve().parent.parent / "build/libraries/venv/bin/opdock"
EXAMPLES = (
    "mnist_cnn", "imdb_lstm", "lstm_text_generation", "mnist_denoising_autoencoder",
    "variational_autoencoder", "mnist_siamese", "cifar10_resnet", "mnist_mlp", "imdb_fasttext",
    "reuters_mlp",
)  # fmt: skip
LIMIT = 600  # seconds for one
EPOCHS, STEPS, MANY = 2, 4, 256


def images(*shape: int) -> Any:
    """Images whose brightest row tells the class, as `load_data` of keras.datasets gives them.

    There are as many as in the published sets, since examples reshape to that number; see `few`.
    """
    labels = np.resize(np.arange(10, dtype=np.uint8), 60000)
    drawn = np.random.default_rng(0).integers(0, 90, (1000, *shape), np.uint8)
    pixels = np.resize(drawn, (60000, *shape))
    pixels[np.arange(60000), 2 * labels + 3] += 160
    return (pixels, labels), (pixels[:10000], labels[:10000])


def sentences(num_words: int | None = None, classes: int = 2, **_: Any) -> Any:
    """Lists of words' numbers: the class is the number of most of them, modulo the classes."""
    drawn = np.random.default_rng(0)
    labels = np.resize(np.arange(classes), MANY)
    top = (num_words or 1000) // classes - 1
    words = [
        (1 + classes * drawn.integers(0, top, 30 + i % 11) + label).tolist()
        for i, label in enumerate(labels)
    ]
    x = np.array(words, dtype=object)
    return (x, labels), (x[: MANY // 4], labels[: MANY // 4])


def text(name: str, *_: Any, **__: Any) -> str:
    """The path of a file with some sentences, for `get_file`."""
    path = Path(tempfile.mkdtemp()) / Path(name).name
    path.write_text("what is done out of love always takes place beyond good and evil. " * 12)
    return str(path)


def made_up() -> None:
    """Puts the data sets in the place of those that Keras would download."""
    import keras
    from keras.datasets import cifar10, imdb, mnist, reuters

    mnist.load_data = lambda *_: images(28, 28)
    cifar10.load_data = lambda: images(32, 32, 3)
    imdb.load_data = sentences
    reuters.load_data = lambda **given: sentences(given.get("num_words"), classes=46)
    keras.utils.plot_model = lambda *_, **__: None  # which needs a program that draws graphs
    sys.modules["keras.utils.vis_utils"].plot_model = keras.utils.plot_model
    keras.utils.data_utils.get_file = keras.utils.get_file = text
    sys.modules["keras.utils.data_utils"].get_file = text


def few(data: Any) -> Any:
    """The first rows of arrays, in tuples and lists as well; anything else as it is."""
    if isinstance(data, (list, tuple)):
        return type(data)(few(one) for one in data)
    return data[:MANY] if isinstance(data, np.ndarray) else data


def shortened(fit: Callable[..., Any], trained: list[Any]) -> Callable[..., Any]:
    """A method that trains, for few epochs; it notes the model and what losses it had."""

    def short(model: Any, *args: Any, **given: Any) -> Any:
        given["epochs"] = min(given.get("epochs", 1), EPOCHS)
        if "steps_per_epoch" in given or fit.__name__ == "fit_generator":
            given["steps_per_epoch"] = STEPS
        if "validation_data" in given:
            given["validation_data"] = few(given["validation_data"])
        history = fit(
            model, *few(args), **{k: few(v) if k in "xy" else v for k, v in given.items()}
        )
        trained.append((model, history.history["loss"]))
        return history

    return short


def child(path: Path) -> None:
    """Runs one example in this process."""
    import keras

    made_up()
    trained: list[Any] = []
    kind = keras.models.Model
    for name in ("fit", "fit_generator"):
        setattr(kind, name, shortened(getattr(kind, name), trained))
    evaluate = kind.evaluate
    kind.evaluate = lambda model, *args, **given: evaluate(model, *few(args), **given)
    sys.argv = [str(path)]
    space = runpy.run_path(str(path), run_name="__main__")
    model, _ = trained[-1]
    losses = [loss for _, some in trained for loss in some]
    if not np.isfinite(losses).all():
        sys.exit(f"losses: {losses}")
    ask = [np.random.default_rng(1).random((4, *s[1:])) for s in shapes(model)]
    saved = str(Path(tempfile.mkdtemp()) / "model.h5")
    model.save(saved)
    again = keras.models.load_model(saved, compile=False, custom_objects=space)
    for kept, read in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(read, kept)
    said = model.predict(ask)
    if np.array_equal(model.predict(ask), said):  # it draws no random numbers
        np.testing.assert_allclose(again.predict(ask), said, rtol=1e-5, atol=1e-6)
    print(f"losses {losses[0]:.4f} ... {losses[-1]:.4f}")


def shapes(model: Any) -> list[tuple[int, ...]]:
    """The shapes of a model's inputs."""
    return [tuple(int(n) if n else 8 for n in x.shape.as_list()) for x in model.inputs]


def main() -> None:
    """Runs the examples that were asked for, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[*EXAMPLES])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.folder)
        return
    failed = []
    env = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    for name in given.names:
        path, begun = given.folder.resolve() / f"{name}.py", time.monotonic()
        words = [str(OPDOCK), "run", __file__, "--child", str(path)]
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(
                words,
                cwd=place,
                env=env,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )  # fmt: skip
        told = [line for line in done.stdout.splitlines() if line.startswith("losses ")]
        print(f"{name}: {time.monotonic() - begun:.0f} s, {(told or ['failed'])[-1]}", flush=True)
        if done.returncode:
            print(done.stderr[-1500:], file=sys.stderr)
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
