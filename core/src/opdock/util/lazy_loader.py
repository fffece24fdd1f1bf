"""TF's `lazy_loader`: a module that is imported when something of it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from types import ModuleType
from typing import Any

__all__ = ["LazyLoader"]


class LazyLoader(ModuleType):
    """Stands for a module until the first look-up, then takes its place.

    Args:
        local_name: what it is called where it stands.
        parent_module_globals: the namespace where it stands.
        name: the module's name.
        warning: said when it is imported.
    """

    def __init__(
        self, local_name: str, parent_module_globals: MutableMapping[str, Any], name: str,
        warning: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals
        self._warning = warning

    def _load(self) -> ModuleType:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        if self._warning:
            from opdock import logging

            logging.warning(self._warning)
            self._warning = None
        # What was taken from the namespace before then finds the module's names as well.
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)

    def __dir__(self) -> list[str]:
        return dir(self._load())
