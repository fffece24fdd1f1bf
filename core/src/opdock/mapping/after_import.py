"""Runs a function when a module has been imported; at once if it is there already."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

Action = Callable[[ModuleType], None]


class _Waiting:
    """A finder that finds nothing itself: it asks the others, and wraps the loader they give."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Action]] = {}
        self._asking: set[str] = set()

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """The spec that the others find, with a loader that acts afterwards."""
        if name not in self.actions or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self._asking.discard(name)
        if spec is not None and spec.loader is not None:
            # Who asks for a spec need not load the module.
            spec.loader = cast(Loader, _Loader(spec.loader, self.actions))
        return spec


class _Loader:
    """Another loader, and then the actions; all else is the other's."""

    def __init__(self, inner: Any, actions: dict[str, list[Action]]) -> None:
        self._inner = inner
        self._actions = actions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return cast("ModuleType | None", self._inner.create_module(spec))

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        for action in self._actions.pop(module.__name__, ()):
            action(module)


_waiting = _Waiting()


def do(name: str, action: Action) -> None:
    """Calls `action(module)` once the module `name` is imported, now if it already is."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    _waiting.actions.setdefault(name, []).append(action)
    if _waiting not in sys.meta_path:
        sys.meta_path.insert(0, cast(Any, _waiting))
