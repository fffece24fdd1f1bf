"""`tf.contrib.learn.datasets`: small data sets, the digits, and points to try classifiers on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock.contrib.learn.datasets import base, synthetic
from opdock.contrib.learn.datasets.base import Dataset, Datasets, load_boston, load_iris
from opdock.examples.tutorials.mnist import input_data as mnist

__all__ = [
    "DATASETS", "SYNTHETIC", "Dataset", "Datasets", "base", "load_boston", "load_dataset",
    "load_iris", "make_dataset", "mnist", "synthetic",
]  # fmt: skip

DATASETS: Final[dict[str, Callable[[], Any]]] = {
    "iris": load_iris, "boston": load_boston, "mnist": mnist.load_mnist,
}  # fmt: skip
SYNTHETIC: Final[dict[str, Callable[..., Dataset]]] = {
    "circles": synthetic.circles, "spirals": synthetic.spirals,
}  # fmt: skip


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """A data set by its name.

    Args:
        name: one of `DATASETS`.
        size, test_with_fake_data: of a data set of texts, which is not here; ignored.

    Raises:
        ValueError: there is none of the name.
    """
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}")
    return DATASETS[name]()


def make_dataset(
    name: str, n_samples: int = 100, noise: float | None = None, seed: int | None = 42,
    **kwargs: Any,
) -> Dataset:  # fmt: skip
    """Points of a shape.

    Args:
        name: one of `SYNTHETIC`.
        n_samples, noise, seed, kwargs: see `synthetic`.

    Raises:
        ValueError: there is none of the name.
    """
    if name not in SYNTHETIC:
        raise ValueError(f"Synthetic dataset not found or not implemeted: {name}")
    return SYNTHETIC[name](n_samples=n_samples, noise=noise, seed=seed, **kwargs)
