"""`tf.contrib`: the parts of it that programs of TF 1's time use; each loads on first use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from opdock._public import PublicModule


class _Contrib(PublicModule):
    """Its modules find TF's other names too, whoever imports them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is ModuleType:
            value.__class__ = PublicModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Contrib
