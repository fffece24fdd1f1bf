"""`tf.flags`: command-line flags, defined where they are used and read through `FLAGS`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

__all__ = [
    "FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer",
    "DEFINE_list", "DEFINE_multi_float", "DEFINE_multi_integer", "DEFINE_multi_string",
    "DEFINE_string", "DuplicateFlagError", "Error", "FlagValues", "IllegalFlagValueError",
    "UnparsedFlagAccessError", "UnrecognizedFlagError", "mark_flag_as_required",
    "mark_flags_as_required",
]  # fmt: skip


class Error(Exception):
    """A flag is defined or given wrongly."""


class DuplicateFlagError(Error):
    """A flag is defined twice."""


class IllegalFlagValueError(Error):
    """A flag has a value that its type does not allow."""


class UnrecognizedFlagError(Error, AttributeError):
    """There is no such flag."""


class UnparsedFlagAccessError(Error):
    """A flag is read before the command line is."""


class _Flag:
    """One definition and its value."""

    def __init__(
        self, name: str, default: Any, help_: str, convert: Callable[[Any], Any], kind: str
    ) -> None:
        self.name, self.help, self.convert, self.kind = name, help_, convert, kind
        self.default = self.value = None if default is None else self.parsed(default)
        self.present = 0
        self.required = False

    def parsed(self, given: Any) -> Any:
        """A value of the flag's type.

        Raises:
            IllegalFlagValueError: it does not convert.
        """
        try:
            return self.convert(given)
        except (TypeError, ValueError) as e:
            raise IllegalFlagValueError(f"flag --{self.name}={given}: {e}") from None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises in place of exiting."""
        raise Error(message)


class FlagValues:
    """The flags of the program, as attributes.

    Reading a flag parses `sys.argv` if nothing has yet. Calling it parses a command line.
    """

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False

    # ------------------------------------------------------------ access
    def __getattr__(self, name: str) -> Any:
        if name == "__flags":
            # What programs for older versions read.
            return self._flags
        flag = self._flags.get(name)
        if flag is None:
            raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")
        if not self._parsed:
            self(sys.argv, known_only=True)
        return flag.value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")
        self._flags[name].value = value

    def __delattr__(self, name: str) -> None:
        if self._flags.pop(name, None) is None:
            raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")

    def __getitem__(self, name: str) -> _Flag:
        flag: _Flag = self._flags[name]
        return flag

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)

    def flag_values_dict(self) -> dict[str, Any]:
        """Names and values."""
        return {name: flag.value for name, flag in self._flags.items()}

    def is_parsed(self) -> bool:
        """Whether a command line has been parsed."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Takes the flags as parsed: they have their defaults."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self) -> None:
        """Back to before the command line, with the defaults."""
        self.__dict__["_parsed"] = False
        for flag in self._flags.values():
            flag.value, flag.present = flag.default, 0

    def _parse_flags(self) -> None:
        self(sys.argv, known_only=True)

    # ------------------------------------------------------------ definition and parsing
    def define(self, flag: _Flag) -> None:
        """Adds a flag.

        Raises:
            DuplicateFlagError: there is one of that name already.
        """
        if flag.name in self._flags:
            raise DuplicateFlagError(f"The flag '{flag.name}' is defined twice.")
        self._flags[flag.name] = flag

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Parses a command line.

        Args:
            argv: the program's name and its arguments.
            known_only: leave flags that are not defined among the arguments.

        Returns:
            The program's name and the arguments that are no flags.

        Raises:
            UnrecognizedFlagError: a flag is not defined.
            IllegalFlagValueError: a value does not fit, or a required flag is missing.
        """
        parser = _Parser(prog=argv[0] if argv else None, allow_abbrev=False)
        for flag in self._flags.values():
            action = "append" if flag.kind == "multi" else "store"
            text = flag.help.replace("%", "%%")
            parser.add_argument(f"--{flag.name}", dest=flag.name, action=action, help=text,
                                default=argparse.SUPPRESS)  # fmt: skip
        options, tail = self._normal(list(argv[1:]))
        found, rest = parser.parse_known_args(options)
        if not known_only:
            for argument in rest:
                if argument.startswith("--"):
                    name = argument[2:].partition("=")[0]
                    raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")
        for name, given in vars(found).items():
            flag = self._flags[name]
            flag.value, flag.present = flag.parsed(given), 1
        for flag in self._flags.values():
            if flag.required and flag.value is None:
                raise IllegalFlagValueError(
                    f"flag --{flag.name}=None: Flag --{flag.name} must have a value other than "
                    "None."
                )
        self.__dict__["_parsed"] = True
        return [*argv[:1], *rest, *tail]

    def _normal(self, arguments: list[str]) -> tuple[list[str], list[str]]:
        """Flags as "--name=value"; booleans may stand alone, with "no" before their name."""
        out: list[str] = []
        i = 0
        while i < len(arguments):
            argument = arguments[i]
            i += 1
            if argument == "--":
                return out, arguments[i:]
            bare = argument.lstrip("-")
            name, equals, value = bare.partition("=")
            dashes = len(argument) - len(bare)
            flag = self._flags.get(name) if dashes in (1, 2) else None
            if dashes in (1, 2) and flag is None and not equals and name.startswith("no"):
                negated = self._flags.get(name[2:])
                if negated is not None and negated.kind == "bool":
                    out.append(f"--{name[2:]}=false")
                    continue
            if flag is None:
                out.append(argument)
            elif equals:
                out.append(f"--{name}={value}")
            elif flag.kind == "bool":
                out.append(f"--{name}=true")
            elif i < len(arguments):
                out.append(f"--{name}={arguments[i]}")
                i += 1
            else:
                raise Error(f"Missing value for flag --{name}")
        return out, []


FLAGS: Final = FlagValues()


def _define(
    name: str, default: Any, help_: str | None, convert: Callable[[Any], Any], kind: str = ""
) -> None:
    FLAGS.define(_Flag(name, default, help_ or "", convert, kind))


def _to_bool(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("true", "t", "1"):
            return True
        if value.lower() in ("false", "f", "0"):
            return False
        raise ValueError("Non-boolean argument to boolean flag")
    if value in (0, 1):
        return bool(value)
    raise TypeError("Non-boolean argument to boolean flag")


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        return int(value, 0)
    if int(value) != value:
        raise ValueError("not an integer")
    return int(value)


def _to_list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value else []
    return list(value)


def _several(convert: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [
        convert(v) for v in (values if isinstance(values, (list, tuple)) else [values])
    ]


def DEFINE_string(name: str, default: str | None, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with text."""
    _define(name, default, help, str)


def DEFINE_integer(name: str, default: int | None, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with an integer."""
    _define(name, default, help, _to_int)


def DEFINE_float(name: str, default: float | None, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with a number."""
    _define(name, default, help, float)


def DEFINE_boolean(name: str, default: bool | None, help: str | None = None, **unused: Any) -> None:
    """Defines a flag that is on (--name, --name=true) or off (--noname, --name=false)."""
    _define(name, default, help, _to_bool, "bool")


DEFINE_bool = DEFINE_boolean


def DEFINE_list(name: str, default: Any, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with texts separated by commas."""
    _define(name, default, help, _to_list)


def DEFINE_enum(
    name: str,
    default: str | None,
    enum_values: Sequence[str],
    help: str | None = None,
    **unused: Any,
) -> None:
    """Defines a flag with one of several texts."""

    def convert(value: Any) -> str:
        if value not in enum_values:
            raise ValueError(f"value should be one of <{'|'.join(enum_values)}>")
        return str(value)

    _define(name, default, help, convert)


def DEFINE_multi_string(name: str, default: Any, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with text that may be given several times; its value is a list."""
    _define(name, default, help, _several(str), "multi")


def DEFINE_multi_integer(name: str, default: Any, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with an integer that may be given several times; its value is a list."""
    _define(name, default, help, _several(_to_int), "multi")


def DEFINE_multi_float(name: str, default: Any, help: str | None = None, **unused: Any) -> None:
    """Defines a flag with a number that may be given several times; its value is a list."""
    _define(name, default, help, _several(float), "multi")


def mark_flag_as_required(flag_name: str) -> None:
    """Makes parsing fail when the flag is not given and has no default."""
    FLAGS[flag_name].required = True


def mark_flags_as_required(flag_names: Sequence[str]) -> None:
    """`mark_flag_as_required` for several flags."""
    for name in flag_names:
        mark_flag_as_required(name)
