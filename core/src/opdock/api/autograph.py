"""`tf.autograph`: Python's control flow over tensors."""

from __future__ import annotations

from typing import Any

from opdock.ops.rewriting.calls import do_not_convert as _do_not_convert
from opdock.ops.rewriting.calls import to_code, to_graph
from opdock.ops.rewriting.status import Feature as _Feature
from opdock.ops.rewriting.verbosity import set_verbosity, trace

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]


class experimental:
    """`tf.autograph.experimental`."""

    Feature = _Feature
    do_not_convert = staticmethod(_do_not_convert)

    @staticmethod
    def set_loop_options(
        parallel_iterations: Any = None, back_prop: Any = None, swap_memory: Any = None,
        maximum_iterations: Any = None,
    ) -> None:  # fmt: skip
        """Does nothing, as in TensorFlow 1.15, which kept the name for later.

        Args:
            parallel_iterations, back_prop, swap_memory, maximum_iterations: as of `tf.while_loop`.
        """
