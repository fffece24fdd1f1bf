"""The samples and oracles that plugins bring for ops of their own (hook `opdock_samples`)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from opdock.plugins.manager import get_manager

__all__ = ["load_plugins"]

_failures: dict[str, str] = {}
_loaded: set[str] = set()


def load_plugins() -> Mapping[str, str]:
    """Imports the modules that plugins name, each once.

    Returns:
        Those that cannot be imported, with the plugin and the error: the report counts each as a
        failure.
    """
    for plugin, module in get_manager().sample_modules():
        if module not in _loaded:
            _loaded.add(module)
            try:
                importlib.import_module(module)
            except Exception as error:
                why = f"plugin {plugin!r}: {type(error).__name__}: {error}"
                _failures[module] = why
    return _failures
