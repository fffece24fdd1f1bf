"""Points on circles and spirals, by class: data to try classifiers on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.contrib.learn.datasets.base import Dataset

__all__ = ["circles", "spirals"]

_Array = np.ndarray[Any, Any]


def circles(
    n_samples: int = 100, noise: float | None = None, seed: int | None = None,
    factor: float = 0.8, n_classes: int = 2,
) -> Dataset:  # fmt: skip
    """Points on circles around one center, one a class, in any order.

    Args:
        n_samples: how many points.
        noise: the standard deviation of what is added to them.
        seed: of the random numbers; None for others each time.
        factor: the radius of each circle as a part of the one around it.
        n_classes: how many circles.
    """
    random = np.random.RandomState(seed)
    angles = np.linspace(0, 2 * np.pi, n_samples // n_classes)
    parts = [factor**k * np.stack([np.cos(angles), np.sin(angles)], 1) for k in range(n_classes)]
    rest = n_samples % n_classes
    x, y = (wave(random.rand(rest) * 2 * np.pi) for wave in (np.cos, np.sin))
    return _dataset([*parts, np.stack([x, y], 1)], n_classes, len(angles), noise, random)


def spirals(
    n_samples: int = 100, noise: float | None = None, seed: int | None = None,
    mode: str = "archimedes", n_loops: int = 2, **kwargs: Any,
) -> Dataset:  # fmt: skip
    """Points on two arms of a spiral, in any order.

    Args:
        n_samples: how many points.
        noise: the standard deviation of what is added to them.
        seed: of the random numbers; None for others each time.
        mode: "archimedes", "bernoulli" or "fermat".
        n_loops: how often an arm goes round.
        kwargs: `exp_scale`, how fast Bernoulli's spiral grows: 0.1 by default.

    Raises:
        ValueError: the mode is none of those.
    """
    if mode not in _SPIRALS:
        raise ValueError(f"Cannot generate spiral with mode {mode}")
    random = np.random.RandomState(seed)
    angles = np.linspace(0, 2 * n_loops * np.pi, n_samples // 2)
    parts = [_arm(mode, angles, k * np.pi, **kwargs) for k in range(2)]
    if n_samples % 2:
        parts.append(_arm(mode, random.rand(1) * 2 * np.pi, 0.0, **kwargs))
    return _dataset(parts, 2, len(angles), noise, random)


def _arm(mode: str, angles: _Array, turned: float, exp_scale: float = 0.1) -> _Array:
    radius = _SPIRALS[mode](angles, exp_scale)
    arm = np.stack([radius * np.cos(angles + turned), radius * np.sin(angles + turned)], 1)
    widths: _Array = np.abs(arm).max(0)
    return arm / widths


_SPIRALS: Final[dict[str, Callable[[_Array, float], _Array]]] = {
    "archimedes": lambda angles, _: angles,
    "bernoulli": lambda angles, scale: np.asarray(np.exp(scale * angles)),
    "fermat": lambda angles, _: np.sqrt(angles),
}


def _dataset(
    parts: list[_Array], classes: int, each: int, noise: float | None, random: np.random.RandomState
) -> Dataset:
    """Points of classes, of which what is left over is of the first, shuffled."""
    x = np.concatenate(parts)
    target = np.zeros(len(x), np.int32)
    target[: classes * each] = np.repeat(np.arange(classes), each)
    order = random.permutation(len(x))
    if noise is not None:
        x = x + random.normal(scale=noise, size=x.shape)
    return Dataset(data=x[order], target=target[order])
