"""What programs say of their lists, which the library reads from their text.

It knows these by being its own objects, so they are imported with it, when first asked for.
"""

from __future__ import annotations

from typing import Any

_NAMES = ("UNSPECIFIED", "set_element_type")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from malt.lang import directives

    return getattr(directives, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
