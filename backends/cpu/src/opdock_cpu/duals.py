"""Losses of linear models and their duals, an example at a time: what coordinate ascent asks.

Source: S. Shalev-Shwartz and T. Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized
Loss Minimization" (2013). Numbers are Python's: a step has one example.
"""

from __future__ import annotations

import math
import sys
from typing import Final

__all__ = ["LOSSES", "Loss"]

_NEWTON_STEPS: Final = 10


class Loss:
    """A loss of the prediction for one example; `curvature` bounds how fast its slope changes."""

    curvature: float

    def label(self, given: float) -> float:
        """The label as the loss counts it; ValueError if it is none."""
        return given

    def dual(self, label: float, dual: float, prediction: float, scale: float) -> float:
        """The dual that is best for an example while all others stay.

        Args:
            label: the example's.
            dual: the one that it has.
            prediction: for the example.
            scale: how much a unit of the dual changes the prediction.
        """
        raise NotImplementedError

    def primal_loss(self, label: float, prediction: float) -> float:
        """The loss."""
        raise NotImplementedError

    def dual_loss(self, label: float, dual: float) -> float:
        """The conjugate of the loss at minus the dual."""
        raise NotImplementedError

    def slope(self, label: float, prediction: float) -> float:
        """The derivative of the loss by the prediction."""
        raise NotImplementedError


class _OfTwoClasses(Loss):
    def label(self, given: float) -> float:
        if given not in (0.0, 1.0):
            raise ValueError(
                "Only labels of 0.0 or 1.0 are supported right now. Found example with label: "
                f"{given:g}"
            )
        return 1.0 if given else -1.0


class Logistic(_OfTwoClasses):
    """log(1 + exp(-label * prediction))."""

    curvature = 4.0

    def dual(self, label: float, dual: float, prediction: float, scale: float) -> float:
        # The dual is (1 + tanh x) / 2 with the label's sign; Newton's method finds x.
        x = 0.0
        for _ in range(_NEWTON_STEPS):
            t = math.tanh(x)
            off = -2 * label * x - prediction - scale * (0.5 * (1 + t) / label - dual)
            x -= off / (-2 * label - 0.5 * scale * (1 - t * t) / label)
        return 0.5 * (1 + math.tanh(x)) / label

    def primal_loss(self, label: float, prediction: float) -> float:
        margin = label * prediction
        return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)

    def dual_loss(self, label: float, dual: float) -> float:
        share = dual * label
        return sum(p * math.log(p) for p in (share, 1 - share) if p > 0)

    def slope(self, label: float, prediction: float) -> float:
        decay = math.exp(-abs(label * prediction))
        return -label * (decay if label * prediction > 0 else 1.0) / (1 + decay)


class SmoothHinge(_OfTwoClasses):
    """The hinge with its corner rounded over a width of `gamma`; of none, the hinge itself."""

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self.curvature = gamma

    def dual(self, label: float, dual: float, prediction: float, scale: float) -> float:
        step, width = label - prediction - self._gamma * dual, scale + self._gamma
        best = dual + (step / width if width else math.copysign(math.inf, step) if step else 0.0)
        return label * min(max(label * best, 0.0), 1.0)

    def primal_loss(self, label: float, prediction: float) -> float:
        short = 1 - label * prediction
        if short <= 0:
            return 0.0
        if short >= self._gamma:
            return short - self._gamma / 2
        return short * short / (2 * self._gamma)

    def dual_loss(self, label: float, dual: float) -> float:
        share = dual * label
        if not 0 <= share <= 1:
            return sys.float_info.max
        return 0.5 * self._gamma * dual * dual - share

    def slope(self, label: float, prediction: float) -> float:
        short = 1 - label * prediction
        if short <= 0:
            return 0.0
        return -label if short >= self._gamma else (prediction - label) / self._gamma


class Squared(Loss):
    """Half the squared error."""

    curvature = 1.0

    def dual(self, label: float, dual: float, prediction: float, scale: float) -> float:
        return dual + (label - dual - prediction) / (1 + scale)

    def primal_loss(self, label: float, prediction: float) -> float:
        return 0.5 * (prediction - label) ** 2

    def dual_loss(self, label: float, dual: float) -> float:
        return dual * (0.5 * dual - label)

    def slope(self, label: float, prediction: float) -> float:
        return prediction - label


class Poisson(Loss):
    """exp(prediction) - label * prediction, of counts."""

    curvature = 1.0

    def label(self, given: float) -> float:
        if given < 0:
            raise ValueError(
                "Only non-negative labels can be used with the Poisson log loss. Found example "
                f"with label: {given:g}"
            )
        return given

    def dual(self, label: float, dual: float, prediction: float, scale: float) -> float:
        # The dual is label - exp(x); Newton's method finds x.
        x = math.log(label - dual) if label > dual else 0.0
        for _ in range(_NEWTON_STEPS):
            e = math.exp(x)
            x -= (x - prediction - scale * (label - dual - e)) / (1 + scale * e)
        return label - math.exp(x)

    def primal_loss(self, label: float, prediction: float) -> float:
        return math.exp(prediction) - prediction * label

    def dual_loss(self, label: float, dual: float) -> float:
        rate = label - dual
        if rate < 0:
            return sys.float_info.max
        return rate * (math.log(rate) - 1) if rate else 0.0

    def slope(self, label: float, prediction: float) -> float:
        return math.exp(prediction) - label


LOSSES: Final[dict[str, Loss]] = {
    "logistic_loss": Logistic(),
    "hinge_loss": SmoothHinge(0.0),
    "smooth_hinge_loss": SmoothHinge(1.0),
    "squared_loss": Squared(),
    "poisson_loss": Poisson(),
}
