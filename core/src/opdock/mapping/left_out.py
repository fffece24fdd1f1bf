"""What of TensorFlow 1.15's public interface is not meant to come, and why."""

from __future__ import annotations

from typing import Final

__all__ = ["reason"]

# Module, or one name -> the reason why it is not meant to come.
_OUT: Final[dict[str, str]] = {
    "config": "settings of TF 2's runtime",
    "distribute.cluster_resolver.TPUClusterResolver": "needs a TPU's own runtime",
    "distribute.experimental.TPUStrategy": "needs a TPU's own runtime",
    "experimental": "settings of TF 2's runtime",
    "lite": "a converter for another runtime",
    "tpu": "needs a TPU's own runtime",
    "xla": "compilers are plugins; see docs/reference/plugin.md",
    "GradientTape": "eager execution; TF 1 programs call tf.gradients",
    "enable_eager_execution": "eager execution",
    "function": "eager execution",
    "wrap_function": "eager execution",
    **dict.fromkeys(
        (
            "keras.experimental.LinearCosineDecay",
            "keras.experimental.NoisyLinearCosineDecay",
            "keras.experimental.terminate_keras_multiprocessing_pools",
        ),
        "tf_keras has dropped it",
    ),
    "keras.mixed_precision": "models of TF 2's time",
    "errors.raise_exception_on_not_ok_status": "statuses of TF's C interface",
    "pywrap_tensorflow": "TF's C interface",
    "user_ops": "an op of TF's that is a joke",
}


def reason(path: str) -> str | None:
    """Why a public path, or a module that it is in, is left out; None where it is not."""
    parts = path.split(".")
    places = (".".join(parts[: i + 1]) for i in range(len(parts)))
    return next((_OUT[place] for place in places if place in _OUT), None)
