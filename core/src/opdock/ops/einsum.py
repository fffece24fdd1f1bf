"""`tf.einsum`: Einstein summation as transposes, sums and matrix products.

An equation is taken apart into pairwise contractions, so every device that multiplies matrices can
run it and its gradient needs no rule of its own.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import broadcast_to, reshape, shape
from opdock.ops.complex import conj
from opdock.ops.composed.eye import eye
from opdock.ops.diag import matrix_diag_part
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.unbroadcast import unbroadcast
from opdock.shapes import Shape

__all__ = ["einsum"]

einsum_op = define_op(
    "Einsum", "inputs: N * T -> output: T", "equation: string, N: int >= 1, T: type"
)
einsum_op.declare(Traits(cost=Cost.PRODUCT))


# ---------------------------------------------------------------- equations
def parse_equation(equation: str, ranks: list[int | None]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, ellipses replaced by labels of their own.

    Args:
        equation: "ij,jk->ik"; without an arrow the result holds the labels that occur once, sorted.
        ranks: the rank of each operand, where known.

    Raises:
        ValueError: the equation is malformed or does not fit the operands.
    """
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(
            f'Expected {len(terms)} arguments for equation "{equation}", but received {len(ranks)}.'
        )
    for term in [*terms, right]:
        if term.count("...") > 1 or set(term.replace("...", "")) - set(string.ascii_letters):
            raise ValueError(f'Invalid subscripts "{term}" in equation "{equation}".')
    if not arrow:
        once = [c for c in sorted(set(left) & set(string.ascii_letters)) if left.count(c) == 1]
        right = ("..." if "..." in left else "") + "".join(once)
    return _name_ellipses(equation, terms, right, ranks)


def _name_ellipses(
    equation: str, terms: list[str], right: str, ranks: list[int | None]
) -> tuple[list[str], str]:
    spare = [c for c in string.ascii_letters if c not in equation]
    widths = []
    for term, n in zip(terms, ranks, strict=True):
        labels = term.replace("...", "")
        if "..." not in term:
            if n is not None and n != len(labels):
                raise ValueError(
                    f'Expected an input of rank {len(labels)} for subscripts "{term}" of equation '
                    f'"{equation}", but its rank is {n}.'
                )
            continue
        if n is None:
            raise ValueError(f'Ellipsis in "{term}" needs an input of known rank.')
        if n < len(labels):
            raise ValueError(
                f'Expected an input of rank {len(labels)} or more for subscripts "{term}" of '
                f'equation "{equation}", but its rank is {n}.'
            )
        widths.append(n - len(labels))
    width = max(widths, default=0)
    if width > len(spare):
        raise ValueError("Unable to resolve ellipsis, too many distinct labels.")
    names = "".join(spare[len(spare) - width :])
    out, used = [], iter(widths)
    for term in terms:
        # Ellipses align at the right, as broadcasting does.
        out.append(term.replace("...", names[width - next(used) :]) if "..." in term else term)
    result = right.replace("...", names)
    missing = sorted(set(result) - set("".join(out)))
    if missing:
        raise ValueError(
            f"Output subscripts contain the label {missing[0]} not present in the input subscripts."
        )
    if width and "..." not in right:
        raise ValueError(f'Equation "{equation}" drops the dimensions of its ellipsis.')
    return out, result


@einsum_op.shape
def _einsum_shape(sig: ShapeSig) -> Shape:
    equation = sig.attrs["equation"]
    if "..." in equation and None in sig.shapes:
        return None
    ranks = [None if s is None else len(s) for s in sig.shapes]
    terms, result = parse_equation(equation, ranks)
    return tuple(_label_sizes(terms, sig.shapes).get(label) for label in result)


def _label_sizes(terms: list[str], operand_shapes: list[Shape]) -> dict[str, int | None]:
    sizes: dict[str, int | None] = {}
    for term, known in zip(terms, operand_shapes, strict=True):
        for label, dim in zip(term, known or (), strict=False):
            before = sizes.get(label)
            if dim is None or before == dim:
                sizes.setdefault(label, dim)
            elif before is None or before == 1:
                sizes[label] = dim
            elif dim != 1:
                raise ValueError(
                    f"Expected dimension {before} for label {label} but got dimension {dim}"
                )
    return sizes


@einsum_op.decomposition
def _einsum_decomposition(sig: ShapeSig, *inputs: Any) -> Tensor:
    return _contract(sig.attrs["equation"], list(inputs))


@einsum_op.gradient
def _einsum_grad(op: Operation, grad: Any) -> list[Any]:
    inputs = list(op.inputs)
    ranks = [None if t.raw_shape is None else len(t.raw_shape) for t in inputs]
    terms, result = parse_equation(op.attrs["equation"], ranks)
    return [_einsum_input_grad(inputs, terms, result, grad, i) for i in range(len(inputs))]


def _einsum_input_grad(
    inputs: list[Tensor], terms: list[str], result: str, grad: Any, index: int
) -> Tensor:
    """The gradient of one input: the result's gradient times all other inputs, summed."""
    x, labels = inputs[index], "".join(dict.fromkeys(terms[index]))
    others = [
        (t, term) for i, (t, term) in enumerate(zip(inputs, terms, strict=True)) if i != index
    ]
    reach = set(result).union(*(term for _, term in others))
    kept = "".join(label for label in labels if label in reach)
    equation = ",".join([result, *(term for _, term in others)]) + "->" + kept
    out = _contract(equation, [grad, *(conj(t) for t, _ in others)])
    sizes = _Operand(x, terms[index])
    if kept != labels:
        # What only this input has was summed away, so its gradient is the same everywhere.
        out = _reshape(out, [sizes.size(c) if c in kept else 1 for c in labels])
        out = broadcast_to(out, convert_to_tensor([sizes.size(c) for c in labels]))
    if labels == terms[index]:
        return unbroadcast(out, x, out)  # type: ignore[no-any-return]
    return _onto_diagonal(out, labels, terms[index], sizes)


def _onto_diagonal(values: Tensor, labels: str, term: str, sizes: _Operand) -> Tensor:
    """What belongs on the diagonal of the repeated labels of `term`, with zeros beside it."""
    spare = iter(c for c in string.ascii_letters if c not in term)
    target, operands, names = "", [values], [labels]
    for i, label in enumerate(term):
        if label not in term[:i]:
            target += label
            continue
        twin = next(spare)
        target += twin
        operands.append(eye(sizes.size(label), dtype=values.dtype))
        names.append(label + twin)
    return _contract(",".join(names) + "->" + target, operands)


# ---------------------------------------------------------------- contraction
@dataclass
class _Operand:
    """A tensor and the label of each of its dimensions."""

    tensor: Tensor
    labels: str

    def size(self, label: str) -> Any:
        """The dimension of `label`: a number where it is known, else a scalar tensor."""
        axis = self.labels.index(label)
        static = self.tensor.raw_shape
        if static is not None and static[axis] is not None:
            return static[axis]
        return shape(self.tensor)[axis]

    def ordered(self, labels: str) -> _Operand:
        """The same operand with its dimensions in the order of `labels`."""
        if labels == self.labels:
            return self
        return _Operand(transpose(self.tensor, [self.labels.index(c) for c in labels]), labels)

    def without_repeats(self) -> _Operand:
        """Repeated labels taken along the diagonal."""
        operand = self
        for label in dict.fromkeys(self.labels):
            while operand.labels.count(label) > 1:
                operand = operand._diagonal(label, matrix_diag_part)
        return operand

    def _diagonal(self, label: str, diag_part: Any) -> _Operand:
        first = self.labels.index(label)
        second = self.labels.index(label, first + 1)
        order = [i for i in range(len(self.labels)) if i not in (first, second)]
        labels = "".join(self.labels[i] for i in order) + label
        return _Operand(diag_part(transpose(self.tensor, [*order, first, second])), labels)

    def summed(self, keep: set[str]) -> _Operand:
        """Dimensions whose label is not in `keep` summed away."""
        axes = [i for i, label in enumerate(self.labels) if label not in keep]
        if not axes:
            return self
        labels = "".join(label for label in self.labels if label in keep)
        return _Operand(reduce_sum(self.tensor, axes), labels)


def _contract(equation: str, inputs: list[Tensor]) -> Tensor:
    ranks = [None if t.raw_shape is None else len(t.raw_shape) for t in inputs]
    terms, result = parse_equation(equation, ranks)
    _label_sizes(terms, [t.raw_shape for t in inputs])
    operands = [_Operand(t, term).without_repeats() for t, term in zip(inputs, terms, strict=True)]
    current = operands.pop(0)
    while operands:
        following = operands.pop(0)
        later = set(result).union(*(o.labels for o in operands))
        current = _pair(
            current.summed(later | set(following.labels)),
            following.summed(later | set(current.labels)),
            later,
        )
    once = "".join(dict.fromkeys(result))
    total = current.summed(set(once)).ordered(once)
    return total.tensor if once == result else _onto_diagonal(total.tensor, once, result, total)


def _pair(a: _Operand, b: _Operand, later: set[str]) -> _Operand:
    """The product of two operands, summed over shared labels that are not needed later."""
    shared = [label for label in a.labels if label in b.labels]
    batch = "".join(label for label in shared if label in later)
    inner = "".join(label for label in shared if label not in later)
    free_a = "".join(label for label in a.labels if label not in shared)
    free_b = "".join(label for label in b.labels if label not in shared)
    if not inner:
        return _outer(a, b, batch, free_a, free_b)
    # A factor that is merely transposed needs no transpose node, only a flag.
    turned_a = a.labels == batch + inner + free_a and not a.tensor.dtype.is_complex
    if not turned_a and a.labels != batch + free_a + inner:
        # The first operand moves anyhow, so it takes the order of the second.
        inner = "".join(label for label in b.labels if label in inner)
    turned_b = b.labels == batch + free_b + inner and not b.tensor.dtype.is_complex
    matrix_a = _grouped(a, batch, (inner, free_a) if turned_a else (free_a, inner))
    matrix_b = _grouped(b, batch, (free_b, inner) if turned_b else (inner, free_b))
    product = matmul(matrix_a, matrix_b, transpose_a=turned_a, transpose_b=turned_b)
    return _ungrouped(product, a, b, batch, free_a, free_b)


def _outer(a: _Operand, b: _Operand, batch: str, free_a: str, free_b: str) -> _Operand:
    """The product without a sum: both operands get the dimensions they lack."""
    left = _grouped_as(a.ordered(batch + free_a), len(batch + free_a), len(free_b))
    right = b.ordered(batch + free_b)
    if free_a:
        dims: list[Any] = [right.size(c) for c in batch] + [1] * len(free_a)
        tensor = _reshape(right.tensor, dims + [right.size(c) for c in free_b])
    else:
        tensor = right.tensor
    return _Operand(left * tensor, batch + free_a + free_b)


def _grouped_as(operand: _Operand, n: int, extra: int) -> Tensor:
    """`operand` with `extra` dimensions of size 1 after its `n` own."""
    if not extra:
        return operand.tensor
    return _reshape(operand.tensor, [operand.size(c) for c in operand.labels] + [1] * extra)


def _grouped(operand: _Operand, batch: str, groups: tuple[str, str]) -> Tensor:
    """`operand` as [batch..., first group, second group], each group merged into one dimension."""
    ordered = operand.ordered(batch + "".join(groups))
    if all(len(group) == 1 for group in groups):
        return ordered.tensor
    dims = [ordered.size(label) for label in batch]
    dims += [_product([ordered.size(label) for label in group]) for group in groups]
    return _reshape(ordered.tensor, dims)


def _ungrouped(
    product: Tensor, a: _Operand, b: _Operand, batch: str, free_a: str, free_b: str
) -> _Operand:
    labels = batch + free_a + free_b
    if len(free_a) == 1 and len(free_b) == 1:
        return _Operand(product, labels)
    result = _Operand(product, batch + "\0\1")  # The merged dimensions have no label.
    dims = [result.size(label) for label in batch]
    dims += [a.size(label) for label in free_a] + [b.size(label) for label in free_b]
    return _Operand(_reshape(product, dims), labels)


def _product(sizes: list[Any]) -> Any:
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    out = sizes[0]
    for size in sizes[1:]:
        out = out * size
    return out


def _reshape(tensor: Tensor, dims: list[Any]) -> Tensor:
    """Reshape to dimensions of which one, when only one is unknown, is left to be inferred."""
    unknown = [i for i, dim in enumerate(dims) if not isinstance(dim, int)]
    if len(unknown) == 1 and 0 not in [d for d in dims if isinstance(d, int)]:
        dims = [-1 if i in unknown else dim for i, dim in enumerate(dims)]
    return reshape(tensor, dims)


@extensible
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums products of elements as an equation of subscripts says.

    "ij,jk->ik" is a matrix product, "ij->ji" a transpose, "ii->" a trace, "bij,bjk->bik" a product
    of batches of matrices; "..." stands for any dimensions, which broadcast.

    Args:
        equation: the subscripts of each input, and (after "->") those of the result; without them
            the result has the labels that occur once, in alphabetic order.
        *inputs: as many tensors of one type as the equation has terms.
        **kwargs: `name`, a name for the operation; `optimize` is accepted and changes nothing.

    Returns:
        A tensor of the type of the inputs.

    Raises:
        ValueError: the equation is malformed or does not fit the shapes of the inputs.
        TypeError: there is an unknown keyword argument.
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        names = ", ".join(kwargs)
        raise TypeError(f"invalid keyword arguments for this function: {names}")
    labels = equation.partition("->")[2].replace(" ", "").replace("...", "")
    if len(set(labels)) != len(labels):
        raise ValueError(f'Output subscripts "{labels}" repeat a label in equation "{equation}".')
    with name_scope(name, "einsum", [equation, inputs]):
        tensors = [convert_to_tensor(value, name="input") for value in inputs]
        return _contract(equation, tensors)
