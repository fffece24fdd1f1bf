"""Where names of TensorFlow's internal modules of ops are in opdock, as data; see `tables`."""

from __future__ import annotations

from typing import Final

_FUNCTIONAL: Final = "opdock.ops.composed.functional_control"

# Internal module -> opdock's modules.
OPS_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.framework.test_ops": (),
    "python.ops.functional_ops": (_FUNCTIONAL,),
    "python.ops.linalg.linear_operator_util": ("opdock.linear.helpers",),
}

# Internal module -> name -> "module:name" of opdock.
OPS_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.ops.functional_ops": {
        "symbolic_gradient": "opdock.ops.composed.defined_function:symbolic_gradient",
    },
    "python.ops.image_ops_impl": {"ResizeMethodV1": "opdock:image.ResizeMethod"},
    "python.ops.nn_impl": {
        "_compute_sampled_logits": "opdock.ops.composed.sampled_losses:compute_sampled_logits",
    },
}
