"""What Keras tells TensorFlow of itself, so that TensorFlow need not import Keras to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.nodes import default_session

__all__ = [
    "get_function", "register_call_context_function", "register_clear_session_function",
    "register_get_session_function", "register_load_context_function",
    "register_load_model_function", "register_session_provider",
]  # fmt: skip

_functions: dict[str, Callable[..., Any]] = {}


def get_function(name: str) -> Callable[..., Any] | None:
    """The function that was registered for "clear_session", "load_model" and so on."""
    return _functions.get(name)


def _registers(name: str) -> Callable[[Callable[..., Any]], None]:
    def register(func: Callable[..., Any]) -> None:
        _functions[name] = func

    register.__name__ = f"register_{name}_function"
    register.__doc__ = f"Keeps Keras' function `{name}`; the last one counts."
    return register


register_call_context_function = _registers("call_context")
register_clear_session_function = _registers("clear_session")
register_get_session_function = _registers("get_session")
register_load_context_function = _registers("load_context")
register_load_model_function = _registers("load_model")


def register_session_provider(session_provider: Callable[[], Any]) -> None:
    """Has checkpoints of objects saved and restored in Keras' session where there is no default."""
    default_session.provide(session_provider)
