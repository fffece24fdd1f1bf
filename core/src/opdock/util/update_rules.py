"""Update rules of the optimizers, each written once over an array namespace.

The namespace `xp` has sqrt, abs, exp, sign, maximum, where and pow; the op definitions use the
rules with graph ops (the decomposition), the portable kernels with arrays. A rule maps the old
state, the hyper-parameters and the gradient to the new state, in the order of the op's references.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

State = list[Any]
Rule = Callable[..., State]


@dataclass(frozen=True, slots=True)
class Update:
    """One optimizer op.

    Attributes:
        name: as in TF's op names ("Adam" for ApplyAdam).
        state: the references after `var`.
        inputs: the other inputs in order; "grad" or "delta" among them is the gradient.
        rule: `rule(xp, flags, state, **inputs) -> new state`.
        flags: boolean attributes with their defaults, besides use_locking.
        integers: inputs of type int64.
        sparse: whether SparseApply exists.
        references: whether there are ops on reference variables, not on handles alone.
        usual: inputs that mostly are one number, for which the rule, given it, takes less.
    """

    name: str
    state: tuple[str, ...]
    inputs: tuple[str, ...]
    rule: Rule
    flags: tuple[tuple[str, bool], ...] = ()
    integers: frozenset[str] = frozenset()
    sparse: bool = True
    references: bool = True
    usual: tuple[tuple[str, float], ...] = ()

    @property
    def gradient(self) -> str:
        """The name of the gradient input."""
        return "delta" if "delta" in self.inputs else "grad"


def gradient_descent(xp: Any, flags: Any, state: State, alpha: Any, delta: Any) -> State:
    """Var -= alpha * delta."""
    return [state[0] - alpha * delta]


def momentum(xp: Any, flags: Any, state: State, lr: Any, grad: Any, momentum: Any) -> State:
    """Momentum (Polyak 1964), Nesterov's variant with the flag (Sutskever et al. 2013)."""
    var, accum = state
    accum = accum * momentum + grad
    step = grad * lr + accum * momentum * lr if flags["use_nesterov"] else accum * lr
    return [var - step, accum]


def keras_momentum(xp: Any, flags: Any, state: State, lr: Any, grad: Any, momentum: Any) -> State:
    """Momentum with the learning rate inside the accumulator, as Keras has it."""
    var, accum = state
    accum = accum * momentum - lr * grad
    step = accum * momentum - lr * grad if flags["use_nesterov"] else accum
    return [var + step, accum]


def adagrad(xp: Any, flags: Any, state: State, lr: Any, grad: Any) -> State:
    """AdaGrad (Duchi et al. 2011)."""
    var, accum = state
    if flags["update_slots"]:
        accum = accum + grad * grad
    return [var - lr * grad / xp.sqrt(accum), accum]


def adagrad_v2(xp: Any, flags: Any, state: State, lr: Any, epsilon: Any, grad: Any) -> State:
    """AdaGrad that may start from zero: epsilon keeps the first step finite."""
    var, accum = state
    if flags["update_slots"]:
        accum = accum + grad * grad
    return [var - lr * grad / (xp.sqrt(accum) + epsilon), accum]


def add_sign(
    xp: Any, flags: Any, state: State, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any
) -> State:
    """AddSign (Bello et al. 2017): longer steps where gradient and its mean agree in sign."""
    var, m = state
    m = m * beta + grad * (1 - beta)
    return [var - lr * (alpha + sign_decay * xp.sign(grad) * xp.sign(m)) * grad, m]


def power_sign(
    xp: Any, flags: Any, state: State, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any
) -> State:
    """PowerSign (Bello et al. 2017): the same with a power in place of the sum."""
    var, m = state
    m = m * beta + grad * (1 - beta)
    return [var - lr * xp.exp(logbase * sign_decay * xp.sign(m) * xp.sign(grad)) * grad, m]


def adam_with_amsgrad(
    xp: Any, flags: Any, state: State, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any, grad: Any,
) -> State:  # fmt: skip
    """AMSGrad (Reddi et al. 2018): Adam whose second moment never falls."""
    var, m, v, vhat = state
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    vhat = xp.maximum(vhat, v)
    return [var - m * rate / (xp.sqrt(vhat) + epsilon), m, v, vhat]


def adadelta(
    xp: Any, flags: Any, state: State, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> State:
    """AdaDelta (Zeiler 2012)."""
    var, accum, accum_update = state
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return [var - update * lr, accum, accum_update * rho + update * update * (1 - rho)]


def adam(
    xp: Any,
    flags: Any,
    state: State,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> State:
    """Adam (Kingma & Ba 2014), in the form with epsilon outside the corrected root."""
    var, m, v = state
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    numerator = m * beta1 + grad * (1 - beta1) if flags["use_nesterov"] else m
    return [var - numerator * alpha / (xp.sqrt(v) + epsilon), m, v]


def adamax(
    xp: Any,
    flags: Any,
    state: State,
    beta1_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
) -> State:
    """AdaMax (Kingma & Ba 2014, section 7)."""
    var, m, v = state
    m = m + (grad - m) * (1 - beta1)
    v = xp.maximum(beta2 * v, xp.abs(grad))
    return [var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v]


def rms_prop(
    xp: Any, flags: Any, state: State, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> State:
    """RMSProp with momentum (Tieleman & Hinton 2012)."""
    var, ms, mom = state
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms + epsilon)
    return [var - mom, ms, mom]


def centered_rms_prop(
    xp: Any, flags: Any, state: State, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> State:
    """RMSProp with the variance about the mean gradient (Graves 2013)."""
    var, mg, ms, mom = state
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return [var - mom, mg, ms, mom]


def ftrl(
    xp: Any, flags: Any, state: State, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
) -> State:
    """FTRL-proximal (McMahan et al. 2013)."""
    return _ftrl(xp, state, grad, grad, lr, l1, l2, lr_power)


def ftrl_v2(
    xp: Any,
    flags: Any,
    state: State,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    lr_power: Any,
) -> State:
    """FTRL with a shrinkage term that acts on the loss only."""
    return _ftrl(xp, state, grad, grad + 2 * l2_shrinkage * state[0], lr, l1, l2, lr_power)


def _power(xp: Any, x: Any, exponent: Any) -> Any:
    return xp.sqrt(x) if isinstance(exponent, float) and exponent == 0.5 else xp.pow(x, exponent)


def _ftrl(
    xp: Any, state: State, grad: Any, shrunk: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
) -> State:
    var, accum, linear = state
    grown = accum + grad * grad
    power_new, power_old = (_power(xp, v, -lr_power) for v in (grown, accum))
    linear = linear + shrunk - (power_new - power_old) / lr * var
    quadratic = power_new / lr + 2 * l2
    moved = (l1 * xp.sign(linear) - linear) / quadratic
    return [xp.where(xp.abs(linear) > l1, moved, linear * 0), grown, linear]


def proximal_gradient_descent(
    xp: Any, flags: Any, state: State, alpha: Any, l1: Any, l2: Any, delta: Any
) -> State:
    """A gradient step followed by the proximal step of l1 and l2 (Duchi & Singer 2009)."""
    return [_proximal(xp, state[0] - alpha * delta, alpha, l1, l2)]


def proximal_adagrad(
    xp: Any, flags: Any, state: State, lr: Any, l1: Any, l2: Any, grad: Any
) -> State:
    """AdaGrad followed by the proximal step of l1 and l2 (Duchi & Singer 2009)."""
    var, accum = state
    accum = accum + grad * grad
    rate = lr / xp.sqrt(accum)
    return [_proximal(xp, var - grad * rate, rate, l1, l2), accum]


def _proximal(xp: Any, moved: Any, rate: Any, l1: Any, l2: Any) -> Any:
    # Without l1 this is `moved` exactly, as sign times magnitude is.
    size = xp.maximum(xp.abs(moved) - rate * l1, moved * 0)
    return xp.sign(moved) * size / (1 + l2 * rate)


def adagrad_da(
    xp: Any, flags: Any, state: State, grad: Any, lr: Any, l1: Any, l2: Any, global_step: Any
) -> State:
    """AdaGrad dual averaging (Duchi et al. 2011)."""
    _, total, squares = state
    total = total + grad
    squares = squares + grad * grad
    size = xp.maximum(xp.abs(total) - l1 * global_step, total * 0)
    var = -lr * (xp.sign(total) * size) / (l2 * global_step * lr + xp.sqrt(squares))
    return [var, total, squares]


UPDATES: Final = (
    Update("GradientDescent", (), ("alpha", "delta"), gradient_descent, sparse=False),
    Update(
        "Momentum", ("accum",), ("lr", "grad", "momentum"), momentum, (("use_nesterov", False),)
    ),
    Update(
        "KerasMomentum",
        ("accum",),
        ("lr", "grad", "momentum"),
        keras_momentum,
        (("use_nesterov", False),),
        references=False,
    ),
    Update("Adagrad", ("accum",), ("lr", "grad"), adagrad, (("update_slots", True),)),
    Update(
        "AdagradV2", ("accum",), ("lr", "epsilon", "grad"), adagrad_v2, (("update_slots", True),)
    ),
    Update(
        "AdamWithAmsgrad",
        ("m", "v", "vhat"),
        ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
        adam_with_amsgrad,
        sparse=False,
        references=False,
    ),
    Update("Adadelta", ("accum", "accum_update"), ("lr", "rho", "epsilon", "grad"), adadelta),
    Update(
        "Adam",
        ("m", "v"),
        ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
        adam,
        (("use_nesterov", False),),
        sparse=False,
    ),
    Update(
        "AdaMax",
        ("m", "v"),
        ("beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"),
        adamax,
        sparse=False,
    ),
    Update(
        "AddSign", ("m",), ("lr", "alpha", "sign_decay", "beta", "grad"), add_sign, sparse=False
    ),
    Update(
        "PowerSign",
        ("m",),
        ("lr", "logbase", "sign_decay", "beta", "grad"),
        power_sign,
        sparse=False,
    ),
    Update("RMSProp", ("ms", "mom"), ("lr", "rho", "momentum", "epsilon", "grad"), rms_prop),
    Update(
        "CenteredRMSProp",
        ("mg", "ms", "mom"),
        ("lr", "rho", "momentum", "epsilon", "grad"),
        centered_rms_prop,
    ),
    Update(
        "Ftrl",
        ("accum", "linear"),
        ("grad", "lr", "l1", "l2", "lr_power"),
        ftrl,
        usual=(("lr_power", -0.5),),
    ),
    Update(
        "FtrlV2",
        ("accum", "linear"),
        ("grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"),
        ftrl_v2,
        usual=(("lr_power", -0.5),),
    ),
    Update(
        "ProximalGradientDescent", (), ("alpha", "l1", "l2", "delta"), proximal_gradient_descent
    ),
    Update("ProximalAdagrad", ("accum",), ("lr", "l1", "l2", "grad"), proximal_adagrad),
    Update(
        "AdagradDA",
        ("gradient_accumulator", "gradient_squared_accumulator"),
        ("grad", "lr", "l1", "l2", "global_step"),
        adagrad_da,
        integers=frozenset({"global_step"}),
    ),
)


def op_name(update: Update, resource: bool, sparse: bool) -> str:
    """TF's op type: "ApplyAdam", "ResourceSparseApplyMomentum"."""
    return f"{'Resource' if resource else ''}{'SparseApply' if sparse else 'Apply'}{update.name}"


BY_OP: Final[dict[str, Update]] = {
    op_name(u, resource, sparse): u
    for u in UPDATES
    for resource in (False, True)
    for sparse in (False, True)
    if (u.sparse or not sparse) and (u.references or resource)
}
