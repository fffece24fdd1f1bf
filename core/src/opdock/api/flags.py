"""`tf.flags`: Abseil's flags, as TensorFlow has them, shared with programs that use `absl.flags`.

Two things are TensorFlow's own: reading a flag parses the command line if nothing has yet, and the
functions that define flags take the argument names of TensorFlow's first versions too.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

# Abseil's own flags come before the program's, which may define them anew.
from absl import app as _app  # noqa: F401
from absl import flags as _flags
from absl.flags import (
    DEFINE_enum,
    DEFINE_list,
    DEFINE_multi_float,
    DEFINE_multi_integer,
    DEFINE_multi_string,
    DuplicateFlagError,
    Error,
    FlagValues,
    IllegalFlagValueError,
    UnparsedFlagAccessError,
    UnrecognizedFlagError,
    mark_flag_as_required,
    mark_flags_as_required,
)

__all__ = [
    "FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer",
    "DEFINE_list", "DEFINE_multi_float", "DEFINE_multi_integer", "DEFINE_multi_string",
    "DEFINE_string", "DuplicateFlagError", "Error", "FlagValues", "IllegalFlagValueError",
    "UnparsedFlagAccessError", "UnrecognizedFlagError", "mark_flag_as_required",
    "mark_flags_as_required",
]  # fmt: skip

# A flag belongs to the module that calls, not to this one.
_flags.disclaim_key_flags()
# Many a program has a `log_dir` of its own; `verbosity` is a flag of a kind that Abseil calls.
for _module, _defined in _flags.FLAGS.flags_by_module_dict().items():
    for _flag in _defined if _module.startswith("absl.") else ():
        _flag.allow_override = type(_flag).__module__.startswith("absl.flags")
_OLD_NAMES: Final = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class ParsedWhenRead:
    """Abseil's flags as attributes; the first that is read parses `sys.argv`."""

    def __init__(self, flags: FlagValues) -> None:
        self.__dict__["_own"] = flags

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__["_own"]
        if name == "_parse_flags":  # what programs for the first versions call
            return lambda args=None: own(sys.argv if args is None else [sys.argv[0], *args])
        if not name.startswith("_") and name in own and not own.is_parsed():
            own(sys.argv)
        return getattr(own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_own"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_own"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_own"])

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["_own"][name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self.__dict__["_own"][name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["_own"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["_own"])

    def __len__(self) -> int:
        return len(self.__dict__["_own"])

    def __str__(self) -> str:
        return str(self.__dict__["_own"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_own"](*args, **kwargs)


FLAGS: Final = ParsedWhenRead(_flags.FLAGS)


def _with_old_names(define: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Abseil's that takes TensorFlow's first argument names as well."""

    @functools.wraps(define)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() & _OLD_NAMES.keys():
            logging.getLogger("tensorflow").warning(
                "Use of the keyword argument names (flag_name, default_value, docstring) is "
                "deprecated, please use (name, default, help) instead."
            )
            kwargs = {_OLD_NAMES.get(key, key): value for key, value in kwargs.items()}
        return define(*args, **kwargs)

    return wrapper


DEFINE_string = _with_old_names(_flags.DEFINE_string)
DEFINE_boolean = _with_old_names(_flags.DEFINE_boolean)
DEFINE_bool = DEFINE_boolean
DEFINE_float = _with_old_names(_flags.DEFINE_float)
DEFINE_integer = _with_old_names(_flags.DEFINE_integer)


def __getattr__(name: str) -> Any:
    return getattr(_flags, name)
