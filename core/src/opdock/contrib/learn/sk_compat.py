"""Estimators of `tf.contrib.learn` with the methods that scikit-learn's have."""

from __future__ import annotations

from typing import Any, Self

from opdock.contrib.learn.estimator import BaseEstimator

__all__ = ["SKCompat"]


class SKCompat:
    """An estimator with the methods of scikit-learn: arrays in, arrays out."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self._estimator = estimator

    def fit(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None,
        max_steps: int | None = None, monitors: Any = None,
    ) -> Self:  # fmt: skip
        """See `BaseEstimator.fit`."""
        self._estimator.fit(
            x, y, steps=steps, batch_size=batch_size, monitors=monitors, max_steps=max_steps
        )
        return self

    def score(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None,
        metrics: Any = None, name: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The metrics; see `BaseEstimator.evaluate`."""
        return self._estimator.evaluate(
            x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name
        )

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """An array, or arrays by name."""
        return BaseEstimator.predict(
            self._estimator, x, batch_size=batch_size, outputs=outputs, as_iterable=False
        )
