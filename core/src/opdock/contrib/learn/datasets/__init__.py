"""`tf.contrib.learn.datasets`: the digits, and how their files are fetched and read."""

from __future__ import annotations

from opdock.examples.tutorials.mnist import input_data as base
from opdock.examples.tutorials.mnist import input_data as mnist
from opdock.examples.tutorials.mnist.input_data import Dataset, Datasets, load_dataset

__all__ = ["Dataset", "Datasets", "base", "load_dataset", "mnist"]
