"""Runs a program as `python program.py` or `python -m module` would: what it sees is the same."""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, BinaryIO, Final, NoReturn, cast

from opdock.mapping import absent
from opdock.mapping.finder import Finder

_STARTED: Final = sys.argv[0]


class CannotRunError(Exception):
    """There is no program of this name; the message is what Python would print."""


def run_script(path: str, arguments: list[str]) -> None:
    """Runs a file, the `__main__` of a folder or zip file, or standard input ("-") as `__main__`.

    Raises:
        CannotRunError: there is no such file, or no `__main__` in it.
    """
    sys.argv = [path, *arguments]
    if path == "-":
        _first_on_path("")
        _run_main(_main_module("<stdin>", None), lambda: _compile(sys.stdin.buffer, "<stdin>"))
        return
    if not os.path.exists(path):
        where = os.path.abspath(path)
        raise CannotRunError(f"can't open file {where!r}: [Errno 2] No such file or directory")
    spec = PathFinder.find_spec("__main__", [path])
    if spec is not None:
        _first_on_path(os.path.abspath(path))
        _run_main(_main_module(spec.origin or path, spec), lambda: _code_of(spec, path))
        return
    if os.path.isdir(path):
        raise CannotRunError(f"can't find '__main__' module in {path!r}")
    file = os.path.abspath(path)
    _first_on_path(os.path.dirname(os.path.realpath(path)))
    _run_main(_main_module(file, None), lambda: _compile_file(file))


def share_with_spawned() -> None:
    """Lets processes that `multiprocessing` spawns import `tensorflow`: they get `sys.path`."""
    from opdock import mapping

    sys.path.insert(1, os.path.join(os.path.dirname(mapping.__file__), "stand_in"))


def _first_on_path(folder: str) -> None:
    """Puts a folder where Python puts the script's: first, instead of that of `opdock` itself."""
    own = {"", os.getcwd(), os.path.dirname(os.path.realpath(_STARTED)), os.path.dirname(_STARTED)}
    if not sys.flags.safe_path and sys.path and sys.path[0] in own:
        sys.path[0] = folder
    else:
        sys.path.insert(0, folder)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module, or the `__main__` of a package, as `__main__`.

    Raises:
        CannotRunError: there is no such module, or it has no code.
    """
    _first_on_path(os.getcwd())
    sys.argv = ["-m", *arguments]
    spec = _spec(name)
    if isinstance(spec.loader, Finder) and spec.submodule_search_locations is not None:
        raise CannotRunError(f"{name} is no program of opdock's: {absent.why(name)}")
    if spec.submodule_search_locations is not None:
        spec = _spec(f"{name}.__main__")
    code = _code_of(spec, name)
    sys.argv[0] = spec.origin or name
    _run_main(_main_module(spec.origin or name, spec), lambda: code)


def _code_of(spec: ModuleSpec, name: str) -> CodeType:
    loader: Any = spec.loader
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise CannotRunError(f"No code object available for {name}")
    return cast(CodeType, code)


def _spec(name: str) -> ModuleSpec:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as e:
        raise CannotRunError(f"Error while finding module specification for {name!r} ({e})") from e
    if found is None:
        raise CannotRunError(f"No module named {name}")
    return found


def _compile_file(path: str) -> CodeType:
    with open(path, "rb") as file:
        return _compile(file, path)


def _compile(file: BinaryIO, path: str) -> CodeType:
    return compile(file.read(), path, "exec", dont_inherit=True)


def _main_module(path: str, spec: ModuleSpec | None) -> ModuleType:
    """The module `__main__` with what Python gives it."""
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path,
        __builtins__=builtins,
        __spec__=spec,
        __loader__=spec.loader if spec is not None else SourceFileLoader("__main__", path),
        __package__=spec.parent if spec is not None else None,
        __cached__=spec.cached if spec is not None else None,
        __annotations__={},
    )
    main.__doc__ = None
    return main


def _run_main(main: ModuleType, code: Callable[[], CodeType]) -> None:
    """Runs the code as `__main__`; what it raises ends the process as in Python."""
    sys.modules["__main__"] = main
    try:
        exec(code(), main.__dict__)  # noqa: S102 - the program that the user asked to run
    except SystemExit:
        raise
    except KeyboardInterrupt as e:
        _report(e)
        _die_of_interrupt()
    except BaseException as e:
        _report(e)
        sys.exit(1)


def _report(error: BaseException) -> None:
    """Prints the traceback as Python does: from the program's first line on."""
    trace: TracebackType | None = error.__traceback__
    here = _report.__code__.co_filename
    while trace is not None and trace.tb_frame.f_code.co_filename == here:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _die_of_interrupt() -> NoReturn:
    """Ends as a program that Ctrl-C ended: the shell that waits for it must see the signal."""
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    sys.exit(130)
