"""Prints what is in a checkpoint: `python -m tensorflow.python.tools.inspect_checkpoint`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opdock import errors
from opdock.io.checkpoint_reader import CheckpointReader, NewCheckpointReader

__all__ = ["main", "parse_numpy_printoption", "print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: Any, tensor_name: str, all_tensors: bool, all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> bool:  # fmt: skip
    """Prints tensors of a checkpoint; what cannot be read is said in place of it.

    Args:
        file_name: the checkpoint's prefix.
        tensor_name: a tensor to print; all names, types and shapes when empty.
        all_tensors: print the names and values of all tensors.
        all_tensor_names: print the names of all tensors.
        count_exclude_pattern: regular expression of names that do not count as parameters.

    Returns:
        Whether it could be read.
    """
    try:
        reader = NewCheckpointReader(file_name)
        if all_tensors or all_tensor_names:
            for name in sorted(reader.get_variable_to_shape_map()):
                print("tensor_name: ", name)
                if all_tensors:
                    print(reader.get_tensor(name))
        elif not tensor_name:
            print(reader.debug_string().decode())
        else:
            print("tensor_name: ", tensor_name)
            print(reader.get_tensor(tensor_name))
        print(f"# Total number of params: {_parameters(reader, count_exclude_pattern)}")
    except errors.OpError as e:
        print(e.message)
        if isinstance(e, errors.DataLossError | errors.NotFoundError):
            _hint(str(file_name))
        return False
    return True


def _hint(name: str) -> None:
    prefix = re.sub(r"\.(index|meta|data(-\d{5}-of-\d{5})?)$", "", name)
    if prefix != name:
        print(
            "\nIt's likely that this is a V2 checkpoint and you need to provide the filename"
            " *prefix*.  Try removing the '.' and extension.  Try:\n"
            f"inspect checkpoint --file_name = {prefix}"
        )


def _parameters(reader: CheckpointReader, exclude: str) -> int:
    sizes = {name: prod(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    if exclude:
        left_out = [sizes.pop(name) for name in list(sizes) if re.search(exclude, name)]
        print(
            f"# Excluding {len(left_out)} tensors ({sum(left_out)} params) that match {exclude}"
            " when counting."
        )
    return sum(sizes.values())


def parse_numpy_printoption(kv_str: str) -> None:
    """Sets one of `numpy.set_printoptions`' options, given as "name=value".

    Raises:
        argparse.ArgumentTypeError: there is no such option, or the value does not fit it.
    """
    name, equals, text = kv_str.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"'{kv_str}' is not in the form k=v.")
    options: dict[str, Any] = dict(np.get_printoptions())
    if name not in options:
        raise argparse.ArgumentTypeError(f"'{name}' is not a valid printoption.")
    kind = type(options[name])
    if kind is type(None):
        raise argparse.ArgumentTypeError(
            f"Setting '{name}' from the command line is not supported."
        )
    try:
        value = _flag(text) if kind is bool else kind(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None
    setter: Any = np.set_printoptions
    setter(**{name: value})


def _flag(text: str) -> bool:
    if text.lower() in ("true", "t", "1"):
        return True
    if text.lower() in ("false", "f", "0"):
        return False
    raise ValueError(f"Non-boolean argument to boolean flag: {text}")


def create_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="inspect_checkpoint", description=__doc__)
    parser.add_argument("--file_name", required=True, help="the checkpoint's prefix")
    parser.add_argument("--tensor_name", default="", help="a tensor to print")
    parser.add_argument(
        "--count_exclude_pattern", default="",
        help="regular expression of tensors that do not count, e.g. an optimizer's",
    )  # fmt: skip
    for name, text in (
        ("--all_tensors", "print the names and values of all tensors"),
        ("--all_tensor_names", "print the names of all tensors"),
    ):
        parser.add_argument(name, nargs="?", const=True, type=_flag, default=False, help=text)
    parser.add_argument(
        "--printoptions", nargs="*", type=parse_numpy_printoption, metavar="NAME=VALUE",
        help="options of numpy.set_printoptions",
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit status."""
    args = create_parser().parse_args(argv)
    done = print_tensors_in_checkpoint_file(
        args.file_name, args.tensor_name, args.all_tensors, args.all_tensor_names,
        args.count_exclude_pattern,
    )  # fmt: skip
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
