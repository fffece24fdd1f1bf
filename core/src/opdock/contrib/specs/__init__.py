"""`tf.contrib.specs`: networks as short texts, such as `net = Cr(64, [3, 3]) | Mp([2, 2])`."""

from __future__ import annotations

from opdock.contrib.specs.evaluation import create_net, create_net_fun, eval_params, eval_spec
from opdock.contrib.specs.params_ops import Lf, Li, Nt, Uf, Ui
from opdock.contrib.specs.specs_lib import (
    Callable,
    Composable,
    Composition,
    External,
    Function,
    Import,
    Operator,
    check_keywords,
    debug,
    get_positional,
)
from opdock.contrib.specs.specs_ops import (
    Ap,
    Bn,
    Cl,
    Cm,
    Conc,
    Cr,
    Cs,
    Ct,
    Cx,
    Do,
    Dwm,
    Dws,
    Expand,
    Fl,
    Flat,
    Fm,
    Fr,
    Fs,
    Ft,
    Fun,
    Fx,
    Id,
    Idx,
    Lrn,
    Mp,
    Print,
    Relu,
    Reshape,
    Shared,
    Sig,
    Smax,
    Squeeze,
    Tanh,
    Transpose,
    Unit,
    Var,
)
from opdock.contrib.specs.summaries import (
    tf_left_split,
    tf_num_params,
    tf_parameter_iter,
    tf_parameter_summary,
    tf_print,
    tf_spec_print,
    tf_spec_structure,
    tf_spec_summary,
    tf_structure,
)

__all__ = [
    "Ap", "Bn", "Callable", "Cl", "Cm", "Composable", "Composition", "Conc", "Cr", "Cs", "Ct",
    "Cx", "Do", "Dwm", "Dws", "Expand", "External", "Fl", "Flat", "Fm", "Fr", "Fs", "Ft", "Fun",
    "Function", "Fx", "Id", "Idx", "Import", "Lf", "Li", "Lrn", "Mp", "Nt", "Operator", "Print",
    "Relu", "Reshape", "Shared", "Sig", "Smax", "Squeeze", "Tanh", "Transpose", "Uf", "Ui",
    "Unit", "Var", "check_keywords", "create_net", "create_net_fun", "debug", "eval_params",
    "eval_spec", "get_positional", "tf_left_split", "tf_num_params", "tf_parameter_iter",
    "tf_parameter_summary", "tf_print", "tf_spec_print", "tf_spec_structure", "tf_spec_summary",
    "tf_structure",
]  # fmt: skip
