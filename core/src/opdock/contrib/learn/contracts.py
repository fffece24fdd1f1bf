"""What `tf.contrib.learn` asks of a model: that it can be trained, and evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Evaluable", "Trainable"]


class Evaluable(ABC):
    """A model that can be evaluated."""

    @property
    @abstractmethod
    def model_dir(self) -> Any:
        """The folder of its checkpoints."""

    @abstractmethod
    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None,
        batch_size: int | None = None, steps: int | None = None, metrics: Any = None,
        name: str | None = None, checkpoint_path: str | None = None, hooks: Any = None,
    ) -> Any:  # fmt: skip
        """Metrics of the model, by name; see `BaseEstimator.evaluate`."""


class Trainable(ABC):
    """A model that can be trained."""

    @abstractmethod
    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: int | None = None,
        batch_size: int | None = None, monitors: Any = None, max_steps: int | None = None,
    ) -> Any:  # fmt: skip
        """Trains the model; see `BaseEstimator.fit`."""
