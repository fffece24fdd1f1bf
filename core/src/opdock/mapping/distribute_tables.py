"""Where the names of TensorFlow's modules for strategies are in opdock, as data."""

from __future__ import annotations

from typing import Final

_CONTEXT: Final = ("opdock.distribute.context", "opdock.distribute.modes")

# Internal module -> opdock's modules in which its names are looked up before TF's exports are.
DISTRIBUTE_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.distribute.device_util": ("opdock.distribute.device_util",),
    "python.distribute.distribute_lib": (
        "opdock.distribute.strategy",
        "opdock.distribute.extended",
        "opdock.distribute.replica",
        *_CONTEXT,
    ),
    "python.distribute.distribution_strategy_context": _CONTEXT,
    "python.distribute.estimator_training": ("opdock.distribute.estimator_training",),
    "python.distribute.reduce_util": ("opdock.distribute.reductions",),
    "python.keras.utils.losses_utils": ("opdock.util.loss_reduction",),
}

# Module -> name -> "module:name" of opdock, where the names differ.
DISTRIBUTE_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.distribute.distribute_lib": {
        "StrategyV1": "opdock.distribute.strategy:Strategy",
        "StrategyExtendedV1": "opdock.distribute.extended:StrategyExtended",
        "StrategyExtendedV2": "opdock.distribute.extended:StrategyExtended",
    },
}
