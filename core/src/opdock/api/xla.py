"""`tf.xla.experimental`: hints that change no result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.identity import identity

__all__ = ["experimental"]


class experimental:
    """`tf.xla.experimental`."""

    @staticmethod
    def compile(computation: Callable[..., Any], inputs: Any = None) -> Any:
        """What a function of tensors gives; the session's backend decides how it is compiled.

        Args:
            computation: a function; operations among its results run with them.
            inputs: its arguments, which are converted to tensors.

        Returns:
            The list of its tensors, or an operation when there are none.

        Raises:
            TypeError: `inputs` is no list or tuple.
        """
        if inputs is not None and not isinstance(inputs, (list, tuple)):
            raise TypeError("inputs must be a list")
        result = computation(*[convert_to_tensor(x) for x in inputs or []])
        flat = list(result) if isinstance(result, (list, tuple)) else [result]
        runs = [r for r in flat if isinstance(r, Operation)]
        with control_dependencies(runs):
            tensors = [
                identity(convert_to_tensor(r)) for r in flat
                if r is not None and not isinstance(r, Operation)
            ]  # fmt: skip
            if not tensors:
                from opdock.ops.control import no_op

                return no_op(name="XLA_Compile")
        return tensors

    @staticmethod
    @contextlib.contextmanager
    def jit_scope(
        compile_ops: Any = True, separate_compiled_gradients: bool = False
    ) -> Iterator[None]:
        """Marks operations with TF's attribute `_XlaCompile`.

        Args:
            compile_ops: whether to compile them, or a function of NodeDefs that says.
            separate_compiled_gradients: whether their gradients are compiled apart.
        """
        if callable(compile_ops):
            yield
            return
        marks = {"_XlaCompile": bool(compile_ops)}
        if separate_compiled_gradients:
            marks["_XlaSeparateCompiledGradients"] = True
        with get_default_graph()._attr_scope(marks):
            yield
