"""Monitors that look at values while an estimator trains: they log, keep, compare or end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

import opdock as tf
from opdock.contrib.learn.monitor_hooks import BaseMonitor, EveryN

__all__ = [
    "CaptureVariable", "GraphDump", "LoggingTrainable", "NanLoss", "NanLossDuringTrainingError",
    "PrintTensor", "StopAtStep",
]  # fmt: skip


def value_of(outputs: Mapping[Any, Any], asked: Any) -> Any:
    """The value of what a monitor asked for; programs that drive monitors know it by its name."""
    return outputs[asked] if asked in outputs else outputs[asked.name]


class StopAtStep(BaseMonitor):
    """Ends the training.

    Args:
        num_steps: after so many steps.
        last_step: after the step of this number.

    Raises:
        ValueError: neither is given, or both.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    @property
    def run_on_all_workers(self) -> bool:
        """True: every task ends."""
        return True

    def step_begin(self, step: int) -> list[Any]:
        """See `BaseMonitor`."""
        super().step_begin(step)
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step + self._num_steps - 1
        return []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Whether it was the last step."""
        super().step_end(step, output)
        return self._last_step is not None and step >= self._last_step


class PrintTensor(EveryN):
    """Logs values.

    Args:
        tensor_names: names of tensors, or a dict of them by what they are called in the log.
        every_n: how many steps there are from one line to the next.
        first_n: of the first so many steps, all.
    """

    def __init__(
        self, tensor_names: Mapping[str, Any] | Iterable[Any], every_n: int = 100, first_n: int = 1
    ) -> None:
        super().__init__(every_n, first_n)
        named = isinstance(tensor_names, Mapping)
        self._names = dict(tensor_names) if named else {name: name for name in tensor_names}

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the tensors."""
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Logs them."""
        tf.logging.info("Step %d: %s", step, _told(self._names, outputs))
        return False


class LoggingTrainable(EveryN):
    """Logs the values of trainable variables.

    Args:
        scope: a regular expression; names of variables begin with what it matches.
        every_n, first_n: see `PrintTensor`.
    """

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope
        self._names: dict[str, str] = {}

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the variables that there are by now."""
        found = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)
        self._names = {variable.name: variable.value().name for variable in found}
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Logs them."""
        tf.logging.info("Logging Trainable: Step %d: %s", step, _told(self._names, outputs))
        return False


def _told(names: Mapping[str, Any], outputs: Mapping[Any, Any]) -> str:
    return ", ".join(f"{tag} = {outputs[name]}" for tag, name in names.items() if name in outputs)


class CaptureVariable(EveryN):
    """Keeps the values of a tensor, all of them.

    Args:
        var_name: its name, with ":0" at the end.
        every_n, first_n: see `PrintTensor`.
    """

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._name = var_name
        self._values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """The values by step."""
        return self._values

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the tensor."""
        return [self._name]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Keeps its value."""
        self._values[step] = value_of(outputs, self._name)
        return False


class GraphDump(BaseMonitor):
    """Keeps the first results of nearly all operations, of every step.

    Args:
        ignore_ops: types of operations whose results are of no interest; `IGNORE_OPS` if None.
    """

    IGNORE_OPS: ClassVar[list[str]] = [
        "Const", "Assign", "Identity", "Placeholder", "RandomUniform", "Cast", "RestoreSlice",
    ]  # fmt: skip

    def __init__(self, ignore_ops: list[str] | None = None) -> None:
        super().__init__()
        self._ignored = ignore_ops or self.IGNORE_OPS
        self._tensors: list[Any] = []
        self._data: dict[int, dict[Any, Any]] = {}

    @property
    def data(self) -> dict[int, dict[Any, Any]]:
        """By step, the values by what they were asked for."""
        return self._data

    def begin(self, max_steps: int | None = None) -> None:
        """Finds the operations of the default graph."""
        super().begin(max_steps=max_steps)
        looked_at = [op for op in tf.get_default_graph().get_operations() if op.outputs]
        self._tensors = [op.outputs[0] for op in looked_at if op.type not in self._ignored]

    def step_begin(self, step: int) -> list[Any]:
        """Asks for all."""
        super().step_begin(step)
        return self._tensors

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Keeps what came."""
        super().step_end(step, output)
        self._data[step] = output
        return False

    def compare(
        self, other_dump: GraphDump, step: int, atol: float = 1e-06
    ) -> tuple[list[str], dict[str, Any]]:
        """What two of these have kept of one step, as far as it is known by name.

        Args:
            other_dump: the other one.
            step: the step.
            atol: how far elements of arrays may be apart.

        Returns:
            The names of equal values, and by name the differences of others: of arrays the
            difference, else both values.

        Raises:
            ValueError: the other one lacks a name.
        """
        mine, others = self.data.get(step, {}), other_dump.data.get(step, {})
        matched: list[str] = []
        apart: dict[str, Any] = {}
        for key, value in mine.items():
            if not isinstance(key, str) or isinstance(value, str):
                continue
            if key not in others:
                raise ValueError(f"{key} missing at step {step}.")
            other = others[key]
            if isinstance(value, np.ndarray):
                if np.allclose(value, other, atol=atol):
                    matched.append(key)
                else:
                    apart[key] = value - other
            elif value == other:
                matched.append(key)
            else:
                apart[key] = value, other
        return matched, apart


class NanLossDuringTrainingError(RuntimeError):
    """A loss was NaN, of which `NanLoss` makes an error."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanLoss(EveryN):
    """Ends the training when the loss is NaN.

    Args:
        loss_tensor: the loss, a scalar.
        every_n_steps: how many steps there are from one look to the next.
        fail_on_nan_loss: whether it ends with an error.
    """

    def __init__(
        self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True
    ) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the loss."""
        return [self._loss]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Whether it is NaN.

        Raises:
            NanLossDuringTrainingError: it is, and that is to be an error.
        """
        if not np.isnan(value_of(outputs, self._loss)):
            return False
        told = "Model diverged with loss = NaN."
        if self._fails:
            tf.logging.error(told)
            raise NanLossDuringTrainingError
        tf.logging.warning(told)
        return True
