"""The functions that specs name, most of them by two letters."""

from __future__ import annotations

from typing import Any

from opdock.contrib import layers
from opdock.contrib.specs.specs_lib import (
    Callable,
    Composable,
    External,
    Function,
    Import,
    debug,
)
from opdock.graph.variables import variable_scope
from opdock.ops.array import expand_dims, reshape, squeeze
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.lrn import local_response_normalization
from opdock.ops.matrix import transpose
from opdock.ops.nn import relu
from opdock.ops.printing import Print as Print_
from opdock.ops.xent import softmax

__all__ = [
    "Ap", "Bn", "Cl", "Cm", "Conc", "Cr", "Cs", "Ct", "Cx", "Do", "Dwm", "Dws", "Expand",
    "External", "Fl", "Flat", "Fm", "Fr", "Fs", "Ft", "Fun", "Fx", "Id", "Idx", "Import", "Lrn",
    "Mp", "Print", "Relu", "Reshape", "Shared", "Sig", "Smax", "Squeeze", "Tanh", "Transpose",
    "Unit", "Var", "debug",
]  # fmt: skip

Fun = Function


class Idx(Composable):
    """What leaves its argument as it is, without an operation."""

    def funcall(self, x: Any) -> Any:
        """The argument."""
        return x


class Conc(Composable):
    """What others make of an argument, joined along a dimension."""

    def __init__(self, dim: int, *args: Composable) -> None:
        self.dim = dim
        self.funs = args

    def funcall(self, x: Any) -> Any:
        """The joined results."""
        return concat([f.funcall(x) for f in self.funs], self.dim)


Print = Fun(Print_)
Id = Fun(identity)

# Convolutions and products with a matrix, by their activations.
Cx = Fun(layers.conv2d)
Cs = Fun(layers.conv2d, activation_fn=sigmoid)
Ct = Fun(layers.conv2d, activation_fn=tanh)
Cr = Fun(layers.conv2d, activation_fn=relu)
Cm = Fun(layers.conv2d, activation_fn=softmax)
Cl = Fun(layers.conv2d, activation_fn=None)

Fx = Fun(layers.fully_connected)
Fs = Fun(layers.fully_connected, activation_fn=sigmoid)
Ft = Fun(layers.fully_connected, activation_fn=tanh)
Fr = Fun(layers.fully_connected, activation_fn=relu)
Fm = Fun(layers.fully_connected, activation_fn=softmax)
Fl = Fun(layers.fully_connected, activation_fn=None)

Mp = Fun(layers.max_pool2d)
Ap = Fun(layers.avg_pool2d)

Do = Fun(layers.dropout)
Bn = Fun(layers.batch_norm)
Lrn = Fun(local_response_normalization)
Unit = Fun(layers.unit_norm)

Flat = Fun(layers.flatten)
Reshape = Fun(reshape)
Transpose = Fun(transpose)
Squeeze = Fun(squeeze)
Expand = Fun(expand_dims)

Relu = Fun(relu)
Sig = Fun(sigmoid)
Tanh = Fun(tanh)
Smax = Fun(softmax)


def Dws(n: int) -> Function:
    """One product with a matrix for all places of an image, and a sigmoid."""
    return Cs(n, [1, 1])


def Dwm(n: int) -> Function:
    """One product with a matrix for all places of an image, and a softmax."""
    return Cm(n, [1, 1])


def Var(name: str, *args: Any, **kw: Any) -> Callable:
    """A variable, whatever the argument is.

    Args:
        name: its name.
        *args: what else `tf.get_variable` takes,
        **kw: and by name.
    """
    return Callable(lambda _: variable_scope.get_variable(name, *args, **kw))


class Shared(Composable):
    """A function with the same variables wherever it is applied.

    Args:
        subnet: the function.
        name: the name of the scope that it makes for them.
        scope: the scope with the variables, if there is one already.

    Raises:
        ValueError: the scope is none, the name is no string, or both are given.
    """

    shared_number = 1

    def __init__(self, subnet: Composable, name: str | None = None, scope: Any = None) -> None:
        if scope is not None and not isinstance(scope, variable_scope.VariableScope):
            raise ValueError("scope must be None or a VariableScope")
        if name is not None and not isinstance(name, str):
            raise ValueError("name must be None or a string")
        if scope is not None and name is not None:
            raise ValueError("cannot provide both a name and a scope")
        if name is None:
            name = f"Shared_{Shared.shared_number}"
            Shared.shared_number += 1
        self.subnet = subnet
        self.name = name
        self.scope = scope

    def funcall(self, x: Any) -> Any:
        """The function's value, with variables that the first call makes."""
        if self.scope is None:
            with variable_scope.variable_scope(self.name, values=[x]) as scope:
                self.scope = scope
                return self.subnet.funcall(x)
        with variable_scope.variable_scope(self.scope, values=[x], reuse=True):
            return self.subnet.funcall(x)
