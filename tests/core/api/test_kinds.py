"""Which public classes are kinds of which: programs choose by `isinstance`."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf

# By module: the classes of which other classes of the module are kinds in TensorFlow 1.15.
BASES: dict[str, set[str]] = {
    "layers": {"Layer"},
    "nn.rnn_cell": {"RNNCell"},
    "initializers": {"Initializer", "VarianceScaling", "variance_scaling"},
    "train": {"Optimizer", "SessionCreator", "SessionRunHook", "Supervisor"},
    "distribute": {"CrossDeviceOps", "Strategy"},
    "contrib.rnn": {
        "FusedRNNCell",
        "LSTMBlockWrapper",
        "LayerRNNCell",
        "RNNCell",
        "GridLSTMCell",
        "ConvLSTMCell",
        "GRUBlockCell",
    },
}


def public(module: Any) -> list[str]:
    found: list[str] = getattr(module, "__all__", dir(module))
    return [name for name in found if not name.startswith("_")]


@pytest.mark.parametrize("name", BASES)
def test_classes_are_kinds_of_those_that_tensorflow_says(name: str) -> None:
    module: Any = tf
    for part in name.split("."):
        module = getattr(module, part)
    named = {each: getattr(module, each) for each in public(module)}
    classes = {each: kind for each, kind in named.items() if isinstance(kind, type)}
    found = {
        (sub, base)
        for sub, a in classes.items()
        for base, b in classes.items()
        if a is not b and issubclass(a, b)
    }
    assert not {pair for pair in found if pair[1] not in BASES[name]}
    assert {base for _, base in found}


def test_a_basic_lstm_is_no_other_lstm() -> None:
    cells = tf.nn.rnn_cell
    assert not isinstance(cells.BasicLSTMCell(2), cells.LSTMCell)
    assert not isinstance(tf.contrib.rnn.LSTMBlockCell(2), cells.LSTMCell)
    assert isinstance(cells.BasicLSTMCell(2), cells.RNNCell)
