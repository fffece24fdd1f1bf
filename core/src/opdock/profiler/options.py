"""What is profiled and how it is shown: TF's dictionaries of options, and who builds them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

__all__ = ["ProfileOptionBuilder"]

TRAINABLE_VARIABLES: Final = "_trainable_variables"
REGISTERED_FLOP_STATS: Final = "flops"


def _options(**changed: Any) -> dict[str, Any]:
    return {
        "max_depth": 10000, "min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0,
        "min_occurrence": 0, "order_by": "name", "account_type_regexes": [".*"],
        "start_name_regexes": [".*"], "trim_name_regexes": [], "show_name_regexes": [".*"],
        "hide_name_regexes": [], "account_displayed_op_only": True, "select": ["micros"],
        "step": -1, "output": "stdout",
    } | changed  # fmt: skip


class ProfileOptionBuilder:
    """Builds the options of a profile, a dictionary, one after the other.

    Args:
        options: a dictionary to begin with, of which a copy is changed.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = (
            _options(max_depth=100, account_displayed_op_only=False)
            if options is None
            else copy.deepcopy(dict(options))
        )

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the numbers in trainable variables."""
        return _options(account_type_regexes=[TRAINABLE_VARIABLES], select=["params"])

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count floating-point operations, where shapes are known."""
        return _options(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options that show the time and the memory that traced steps took.

        Args:
            min_micros: microseconds that a node has to have taken on all devices to be shown.
            min_bytes: bytes that it has to have asked for.
            min_accelerator_micros: microseconds of an accelerator's own.
            min_cpu_micros: microseconds as the host sees them.
            min_peak_bytes: bytes that it has to have held at one time.
            min_residual_bytes: bytes that were held when it was over.
            min_output_bytes: bytes of its results.
        """
        return _options(
            min_micros=min_micros, min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes, order_by="micros", select=["micros", "bytes"],
        )  # fmt: skip

    def build(self) -> dict[str, Any]:
        """A copy of the options."""
        return copy.deepcopy(self._options)

    def _with(self, **changed: Any) -> Self:
        self._options.update(copy.deepcopy(changed))
        return self

    def with_max_depth(self, max_depth: int) -> Self:
        """How deep the tree, or how long the list, that is shown may be."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> Self:
        """Shows what took at least so many bytes; `time_and_memory` says what each of them is."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> Self:
        """Shows what took at least so long; `time_and_memory` says what each of them is."""
        return self._with(
            min_micros=min_micros,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
        )

    def with_min_parameters(self, min_params: int) -> Self:
        """Shows what has at least so many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> Self:
        """Shows what ran at least so many times."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> Self:
        """Shows what takes at least so many floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Iterable[str]) -> Self:
        """Counts nodes of which a type matches: that of the op, the device, or one of an op log."""
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> Self:
        """Shows some nodes by their names; each expression has to match a whole name.

        Args:
            start_name_regexes: which nodes to begin with.
            show_name_regexes: which of those below them to show,
            hide_name_regexes: except these.
            trim_name_regexes: below which nodes to look no further.
        """
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{name: value for name, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> Self:
        """Whether totals are those of the shown nodes, not of all that are counted."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> Self:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> Self:
        """Prints to the standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> Self:
        """Prints into a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> Self:
        """Writes a Chrome trace of each step, with its number behind the name; of graphs alone."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: str) -> Self:
        """Writes a file for pprof, with the one figure that is selected; of lines of code alone."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: str) -> Self:
        """The figure by which siblings are ordered, the greatest first, or "name"."""
        return self._with(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> Self:
        """The figures that are printed."""
        return self._with(select=attributes)

    def with_step(self, step: int) -> Self:
        """The step of `Profiler.add_step` that is shown; -1 for the average of all."""
        return self._with(step=step)
