"""What a model does in a call, in the words of estimators and of Keras."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final


class EstimatorModeKeys:
    """The modes of an estimator's `model_fn`."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class KerasModeKeys:
    """The same in Keras's words."""

    TRAIN = "train"
    TEST = "test"
    PREDICT = "predict"


_SAME: Final = {
    EstimatorModeKeys.EVAL: KerasModeKeys.TEST,
    EstimatorModeKeys.PREDICT: KerasModeKeys.PREDICT,
}


def plain(mode: Any) -> str:
    """A mode in Keras's words.

    Raises:
        ValueError: it is none in anybody's words.
    """
    found = _SAME.get(mode, mode)
    if found not in (KerasModeKeys.TRAIN, KerasModeKeys.TEST, KerasModeKeys.PREDICT):
        raise ValueError(f"Invalid mode key: {mode}.")
    return str(found)


def is_train(mode: Any) -> bool:
    """Whether a mode trains."""
    return bool(_SAME.get(mode, mode) == KerasModeKeys.TRAIN)


def is_eval(mode: Any) -> bool:
    """Whether a mode evaluates."""
    return bool(_SAME.get(mode, mode) == KerasModeKeys.TEST)


def is_predict(mode: Any) -> bool:
    """Whether a mode predicts."""
    return bool(_SAME.get(mode, mode) == KerasModeKeys.PREDICT)


class ModeKeyMap(Mapping[str, Any]):
    """A mapping from modes, in whichever words.

    Raises:
        ValueError: two keys mean one mode, or a key means none.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._given = tuple(kwargs)
        self._values: dict[str, Any] = {}
        for key, value in kwargs.items():
            mode = plain(key)
            if mode in self._values:
                raise ValueError(
                    f"Error creating ModeKeyMap. Multiple keys/values found for {mode} mode."
                )
            self._values[mode] = value

    def __getitem__(self, key: str) -> Any:
        return self._values[plain(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)
