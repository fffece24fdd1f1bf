"""What a layer asks of its inputs, and the messages when they do not comply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opdock import dtypes, shapes


class InputSpec:
    """The rank, type and dimensions that a layer requires of one input.

    Args:
        dtype: the expected type, or None.
        shape: the expected shape, entries None where any size will do, or None.
        ndim: the exact rank, or None.
        max_ndim: the highest rank, or None.
        min_ndim: the lowest rank, or None.
        axes: expected sizes by dimension; negative dimensions count from the end.
    """

    def __init__(
        self, dtype: Any = None, shape: Any = None, ndim: int | None = None,
        max_ndim: int | None = None, min_ndim: int | None = None,
        axes: Mapping[int, Any] | None = None,
    ) -> None:  # fmt: skip
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.shape = shape
        self.ndim = len(shape) if shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = {int(k): shapes.dimension_value(v) for k, v in (axes or {}).items()}

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes an equal one of."""
        return {
            "dtype": self.dtype, "shape": self.shape, "ndim": self.ndim,
            "max_ndim": self.max_ndim, "min_ndim": self.min_ndim, "axes": self.axes,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> InputSpec:
        """One of what `get_config` told."""
        return cls(**config)

    def __repr__(self) -> str:
        facts = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        given = ", ".join(f"{k}={getattr(self, k)}" for k in facts if getattr(self, k))
        return f"InputSpec({given})"


def check_inputs(specs: Any, inputs: Sequence[Any], layer_name: str) -> None:
    """Compares the inputs of a layer with its specs.

    Args:
        specs: an InputSpec, a list of them, or None.
        inputs: the input tensors, flat.
        layer_name: for the message.

    Raises:
        ValueError: the number of inputs, or the rank, type or a dimension of one, does not fit.
    """
    if not specs:
        return
    # Keras has a class of its own that says the same.
    wanted = list(specs) if isinstance(specs, (list, tuple)) else [specs]
    if len(wanted) != len(inputs):
        raise ValueError(
            f"Layer {layer_name} expects {len(wanted)} inputs, but it received {len(inputs)} input "
            f"tensors. Inputs received: {list(inputs)}"
        )
    for index, (tensor, spec) in enumerate(zip(inputs, wanted, strict=True)):
        if spec is None:
            continue
        problem = _problem(spec, tensor)
        if problem:
            raise ValueError(
                f"Input {index} of layer {layer_name} is incompatible with the layer: {problem}"
            )


def _problem(spec: InputSpec, tensor: Any) -> str:
    static = tensor.shape.raw
    if static is None:
        if spec.ndim is None and spec.min_ndim is None and spec.max_ndim is None:
            return ""
        return "its rank is undefined, but the layer requires a defined rank."
    rank, dims = len(static), list(static)
    full = f" Full shape received: {dims}"
    if spec.ndim is not None and rank != spec.ndim:
        return f"expected ndim={spec.ndim}, found ndim={rank}.{full}"
    if spec.max_ndim is not None and rank > spec.max_ndim:
        return f"expected max_ndim={spec.max_ndim}, found ndim={rank}"
    if spec.min_ndim is not None and rank < spec.min_ndim:
        return f"expected min_ndim={spec.min_ndim}, found ndim={rank}.{full}"
    wanted = None if spec.dtype is None else dtypes.as_dtype(spec.dtype)
    if wanted is not None and tensor.dtype.base_dtype is not wanted:
        return f"expected dtype={wanted.name}, found dtype={tensor.dtype}"
    for axis, size in spec.axes.items():
        if size is not None and dims[axis] not in (size, None):
            return (
                f"expected axis {axis} of input shape to have value {size} but received input "
                f"with shape {dims}"
            )
    if spec.shape is not None:
        for expected, size in zip(spec.shape, dims, strict=True):
            if expected is not None and size is not None and expected != size:
                return f"expected shape={tuple(spec.shape)}, found shape={dims}"
    return ""
