"""The options of a profile, as the views read them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opdock import errors

__all__ = ["Settings"]

_OUTPUTS: Final = ("file", "none", "pprof", "stdout", "timeline")
_ALL: Final = (".*",)


@dataclass(frozen=True, slots=True)
class Settings:
    """TF's options by their names, and where the profile goes.

    Attributes:
        output: "stdout", "file", "timeline", "pprof" or "none".
        outfile: the file's path.
    """

    max_depth: int = 10
    min_bytes: int = 0
    min_peak_bytes: int = 0
    min_residual_bytes: int = 0
    min_output_bytes: int = 0
    min_micros: int = 0
    min_accelerator_micros: int = 0
    min_cpu_micros: int = 0
    min_params: int = 0
    min_float_ops: int = 0
    min_occurrence: int = 0
    step: int = -1
    order_by: str = "name"
    account_type_regexes: tuple[str, ...] = ()
    start_name_regexes: tuple[str, ...] = ()
    trim_name_regexes: tuple[str, ...] = ()
    show_name_regexes: tuple[str, ...] = ()
    hide_name_regexes: tuple[str, ...] = ()
    account_displayed_op_only: bool = False
    select: tuple[str, ...] = ()
    output: str = "stdout"
    outfile: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Settings:
        """The settings of a dictionary of options, with TF's defaults for those that it lacks.

        Raises:
            InvalidArgumentError: the output is none of TF's.
        """
        fields = {field.name for field in dataclasses.fields(cls)} - {"output", "outfile"}
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list | tuple) else value
            for name, value in options.items()
            if name in fields
        }
        if path := options.get("dump_to_file", ""):
            return cls(**known, output="file", outfile=path)
        output, outfile = _output(options.get("output", "stdout") or "stdout")
        return cls(**known, output=output, outfile=outfile)

    def as_text(self) -> str:
        """The options, one a line."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "outfile"}
        if self.outfile:
            shown["output"] = f"{self.output}:outfile={self.outfile}"
        return "".join(f"{f'-{name}':<28}{_text(value)}\n" for name, value in shown.items())


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _output(text: str) -> tuple[str, str]:
    kind, _, rest = text.partition(":")
    if kind not in _OUTPUTS:
        raise errors.InvalidArgumentError(
            None, None, f"Unknown output type: {kind}, Valid types: {','.join(_OUTPUTS)}"
        )
    name, _, outfile = rest.partition("=")
    with_file = kind in ("file", "pprof", "timeline")
    if rest and (not with_file or name != "outfile" or not outfile):
        raise errors.InvalidArgumentError(
            None, None, f"Unrecognized option {rest} for output_type: {kind}"
        )
    if with_file and not outfile:
        raise errors.InvalidArgumentError(
            None, None, f"Missing required output option for {kind}: {kind}:outfile=<filename>"
        )
    return kind, outfile


def all_match(patterns: Iterable[str]) -> bool:
    """Whether the expressions are the one that matches everything."""
    return tuple(patterns) == _ALL


def matches(patterns: Iterable[str], *texts: str) -> bool:
    """Whether one of the expressions matches one of the texts as a whole."""
    return any(re.fullmatch(pattern, text) for pattern in patterns for text in texts)
