"""`tf.contrib.learn`: texts as ids, data sets, and the names of the modes of a model."""

from __future__ import annotations

from typing import Final

from opdock.contrib.learn import datasets, preprocessing

__all__ = ["ModeKeys", "datasets", "preprocessing"]


class ModeKeys:
    """The modes in which a model is built."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"
