"""Specs as text, and the networks that they name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from opdock.contrib.specs import params_ops, specs_ops
from opdock.contrib.specs.specs_lib import check_keywords

__all__ = ["create_net", "create_net_fun", "eval_params", "eval_spec"]


def eval_params(params: str, environment: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The names that assignments of parameters make, such as `"n = Li(5, 500); d = 3"`.

    They may use Python's functions of numbers, and those of `params_ops`.

    Args:
        params: the assignments.
        environment: names that they may use; they are in the result too.

    Raises:
        ValueError: there is a keyword that is no part of specs.
    """
    return _evaluated(params, environment, vars(math) | _names(params_ops))


def eval_spec(spec: str, environment: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The names that a spec makes, such as `"net = (Cr(64, [3, 3]) | Mp([2, 2])) ** 2 | Flat"`.

    Args:
        spec: assignments of what the functions of `specs_ops` give.
        environment: names that they may use; they are in the result too.

    Raises:
        ValueError: there is a keyword that is no part of specs.
    """
    return _evaluated(spec, environment, _names(specs_ops))


def create_net_fun(spec: str, environment: Mapping[str, Any] | None = None) -> Callable[[Any], Any]:
    """The function that a spec calls `net`.

    Args:
        spec: see `eval_spec`.
        environment: names that it may use.

    Raises:
        ValueError: there is none, or a keyword that is no part of specs.
    """
    net = eval_spec(spec, environment).get("net")
    if net is None:
        raise ValueError(f"spec failed to create 'net': {spec}")
    function: Callable[[Any], Any] = net.funcall
    return function


def create_net(spec: str, inputs: Any, environment: Mapping[str, Any] | None = None) -> Any:
    """What the function that a spec calls `net` makes of a tensor; see `create_net_fun`."""
    return create_net_fun(spec, environment)(inputs)


def _names(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


def _evaluated(
    text: str, environment: Mapping[str, Any] | None, known: dict[str, Any]
) -> dict[str, Any]:
    check_keywords(text)
    found = dict(environment or {})
    exec(text, known, found)  # noqa: S102 - a spec is Python
    return found
