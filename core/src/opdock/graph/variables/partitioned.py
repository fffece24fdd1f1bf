"""Partitioned variables: one variable cut along one axis into several, saved as one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor, register_tensor_conversion_function
from opdock.graph.nodes.operation import Operation, Tensor, has_graph, is_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.variable import Variable
from opdock.shapes import Shape, TensorShape

Partitioner = Callable[..., list[int]]


class PartitionedVariable:
    """Several variables that are parts of one, in order along one axis.

    It converts to the whole tensor; iterating gives the parts.

    Args:
        name: the name of the whole.
        shape: the shape of the whole.
        dtype: the element type.
        variable_list: the parts; their `SaveSliceInfo` says in which order they come.
        partitions: the number of parts along each axis.

    Raises:
        TypeError: the parts or the partitions are no list.
        ValueError: they do not fit together.
    """

    def __init__(
        self, name: str, shape: Any, dtype: DType, variable_list: list[Any], partitions: list[int]
    ) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(f"partitions is not a list or tuple: {partitions}")
        _check_parts(shape, variable_list, partitions)
        self._name = name
        self._shape = TensorShape(shape)
        self._dtype = dtype
        self._variable_list = sorted(
            variable_list, key=lambda v: list(v._get_save_slice_info().var_offset)
        )
        self._partitions = list(partitions)

    # ------------------------------------------------------------ facts
    @property
    def name(self) -> str:
        """The name of the whole."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return self._variable_list[0].graph

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        return len(self._variable_list)

    def _get_variable_list(self) -> list[Any]:
        return self._variable_list

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [i for i, n in enumerate(self._partitions) if n > 1] or [0]

    # ------------------------------------------------------------ values
    def as_tensor(self) -> Tensor:
        """The whole, joined from the parts, whatever else has to run first."""
        with control_dependencies(None), name_scope(None):
            return self._concat()

    def _concat(self) -> Tensor:
        if len(self._variable_list) == 1:
            with name_scope(None):
                return get("Identity")(convert_to_tensor(self._variable_list[0]), name=self._name)  # type: ignore[no-any-return]
        with name_scope(self._name + "/ConcatPartitions/"):
            parts = [convert_to_tensor(v) for v in self._variable_list]
            joined = get("ConcatV2")(parts, self._partition_axes()[0], name="concat")
        with name_scope(None):
            return get("Identity")(joined, name=self._name)  # type: ignore[no-any-return]

    def _apply(self, method: str, value: Any, read_value: bool, **kwargs: Any) -> list[Any]:
        tensors = isinstance(value, (list, tuple)) and all(has_graph(v) for v in value)
        if isinstance(value, PartitionedVariable) or tensors:
            parts = list(value)
        else:
            axis = self._partition_axes()[0]
            sizes = [v.shape.as_list()[axis] for v in self._variable_list]
            whole = convert_to_tensor(value, self._dtype)
            parts = list(get("SplitV")(whole, sizes, axis, num_split=len(sizes)))
        done = [
            getattr(v, method)(p, **kwargs) for v, p in zip(self._variable_list, parts, strict=True)
        ]
        return done if read_value else [d.op if hasattr(d, "op") else d for d in done]

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Assigns to each part its share of `value`; returns one result per part."""
        return self._apply("assign", value, read_value, use_locking=use_locking)

    def assign_add(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Adds to each part its share of `value`; returns one result per part."""
        return self._apply("assign_add", value, read_value, use_locking=use_locking)

    def assign_sub(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Subtracts from each part its share of `value`; returns one result per part."""
        return self._apply("assign_sub", value, read_value, use_locking=use_locking)

    @property
    def initializer(self) -> Operation:
        """An operation that initializes all parts."""
        with control_dependencies([v.initializer for v in self._variable_list]):
            done: Operation = get("NoOp")()
            return done

    def __repr__(self) -> str:
        return (
            f"<tf.PartitionedVariable '{self._name}' shape={self._shape} dtype={self._dtype.name} "
            f"in {len(self)} parts>"
        )


def _check_parts(shape: Any, parts: Sequence[Any], partitions: Sequence[int]) -> None:
    """Raises ValueError unless the parts are those of one variable of the shape."""
    if not all(p >= 1 for p in partitions):
        raise ValueError(f"partition values must be positive: {partitions}")
    if not parts:
        raise ValueError("variable_list may not be empty")
    places = [v._get_save_slice_info() for v in parts]
    if None in places:
        raise ValueError(
            f"All variables must have a save_slice_info available: {[v.name for v in parts]}"
        )
    whole = TensorShape(shape).as_list()
    if len(whole) != len(partitions):
        raise ValueError(f"len(shape) != len(partitions): {shape} vs. {partitions}")
    if any(list(place.full_shape) != whole for place in places):
        raise ValueError(
            f"All variables' full shapes must match shape: {shape}; but full shapes were: "
            f"{[place.full_shape for place in places]}"
        )


def parts_of(variable: Any) -> list[Any]:
    """A variable's parts, which may be given as a list: itself, unless it is partitioned."""
    if isinstance(variable, list):
        return variable
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def _to_tensor(
    var: PartitionedVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(var.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtypes.as_dtype(dtype).name}' for "
            f"variable of type '{var.dtype.name}'"
        )
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return var.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)


# ---------------------------------------------------------------- get_variable
def get_partitioned(
    store: Any,
    name: str,
    shape: Shape,
    dtype: DType | None,
    initializer: Any,
    partitioner: Partitioner | None,
    reuse: Any,
    options: dict[str, Any],
) -> PartitionedVariable | None:
    """The partitioned variable `name` of a store, made or shared as `reuse` says.

    Args:
        store: the VariableStore.
        name: the name of the whole.
        shape: the shape of the whole, None to take the initializer's.
        dtype: the element type.
        initializer: a value for the whole, or an initializer that is called for each part.
        partitioner: the number of parts along each axis, from `shape` and `dtype`.
        reuse: as in `tf.get_variable`.
        options: further arguments for each part.

    Returns:
        The variable, or None for a scalar, which has no parts.

    Raises:
        ValueError: the variable exists and may not, or the reverse; or the partition is malformed.
    """
    if shape == ():
        return None
    found: PartitionedVariable | None = store._partitioned_vars.get(name)
    if found is not None:
        _shared(name, found, shape, dtype, reuse)
        if callable(partitioner) and shape is not None and None not in shape:
            wanted = _partitions(partitioner, list(shape), found.dtype)  # type: ignore[arg-type]
            if wanted != found._partitions:
                raise ValueError(
                    f"Trying to reuse partitioned variable {name}, but specified partitions "
                    f"{wanted} and found partitions {found._partitions}."
                )
        return found
    if reuse is True:
        raise ValueError(
            f"PartitionedVariable {name} does not exist, or was not created with "
            "tf.get_variable(). Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
        )
    if not callable(partitioner):
        raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
    value = None
    if initializer is not None and not callable(initializer):
        # A tensor has a type, whatever was asked for.
        value = convert_to_tensor(initializer, None if is_tensor(initializer) else dtype)
        if not shapes.is_compatible(shape, value.raw_shape):
            raise ValueError(
                f"The initializer of {name} has shape {value.shape}, but the shape given is "
                f"{TensorShape(shape)}"
            )
        shape, dtype = value.raw_shape, value.dtype.base_dtype
    if shape is None or None in shape:
        raise ValueError(
            f"Shape of a new partitioned variable ({name}) must be fully defined, but instead was "
            f"{TensorShape(shape)}."
        )
    whole = [int(d or 0) for d in shape]
    partitions = _partitions(partitioner, whole, dtype or dtypes.float32)
    axis, count = _cut(partitions)
    parts = []
    for i, (offset, size) in enumerate(_slices(whole, count, axis)):
        part = _part(
            store, f"{name}/part_{i}", value, initializer, whole, offset, size, dtype, reuse,
            options,
        )  # fmt: skip
        part._set_save_slice_info(Variable.SaveSliceInfo(name, whole, offset, size))
        parts.append(part)
    made = PartitionedVariable(name, whole, parts[0].dtype.base_dtype, parts, partitions)
    store._partitioned_vars[name] = made
    return made


def _shared(
    name: str, found: PartitionedVariable, shape: Shape, dtype: DType | None, reuse: Any
) -> PartitionedVariable:
    if reuse is False:
        raise ValueError(
            f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True "
            "or reuse=tf.AUTO_REUSE in VarScope?"
        )
    if shape is not None and not shapes.is_compatible(shape, found.shape.raw):
        raise ValueError(
            f"Trying to reuse partitioned variable {name}, but specified shape "
            f"{TensorShape(shape)} "
            f"and found shape {found.shape}."
        )
    if dtype is not None and dtype is not found.dtype:
        raise ValueError(
            f"Trying to reuse partitioned variable {name}, but specified dtype {dtype.name} and "
            f"found dtype {found.dtype.name}."
        )
    return found


def _part(
    store: Any, name: str, value: Tensor | None, initializer: Any, whole: list[int],
    offset: list[int], size: list[int], dtype: DType | None, reuse: Any, options: dict[str, Any],
) -> Any:  # fmt: skip
    kwargs: dict[str, Any] = {"dtype": dtype, "reuse": reuse, **options}
    if value is not None:
        with name_scope(name + "/PartitionedInitializer/"):
            kwargs["initializer"] = get("Slice")(value, offset, size)
    else:
        kwargs["shape"] = size
        kwargs["initializer"] = _with_place(initializer, PartitionInfo(whole, offset))
    return store._true_getter(name, **kwargs)


class PartitionInfo:
    """Where a part lies in the whole, for initializers that ask.

    Attributes:
        full_shape: the shape of the whole.
        var_offset: where the part begins on each axis.

    Raises:
        TypeError: one of them is no sequence.
        ValueError: the part does not begin within the whole.
    """

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        _check_sequence("full_shape", full_shape)
        _check_sequence("var_offset", var_offset)
        if len(var_offset) != len(full_shape):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(var_offset)} while "
                f"full_shape is of length {len(full_shape)}."
            )
        for offset, size in zip(var_offset, full_shape, strict=True):
            if not 0 <= offset < size:
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, shape={size} for "
                    f"var_offset={var_offset}, full_shape={full_shape}"
                )
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_offset(self, shape: Sequence[int]) -> int:
        """Where a part begins on the axis that is cut; 0 if none is.

        Args:
            shape: the part's.

        Raises:
            TypeError: the shape is no sequence.
            ValueError: it is not the shape of a part, or two axes are cut.
        """
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis that is cut, None if none is; see `single_offset`."""
        _check_sequence("shape", shape)
        if len(shape) != len(self.full_shape):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while "
                f"self.full_shape={self.full_shape} is of length {len(self.full_shape)}."
            )
        cut = [i for i, size in enumerate(shape) if size != self.full_shape[i]]
        for i in cut:
            if self.var_offset[i] + shape[i] > self.full_shape[i]:
                raise ValueError(
                    f"With self.var_offset={self.var_offset}, a partition of shape={shape} would "
                    f"exceed self.full_shape={self.full_shape} in dimension {i}."
                )
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape={shape} and self.full_shape="
                f"{self.full_shape} since slice dim could be either dimension {cut[1]} or {cut[0]}."
            )
        return cut[0] if cut else None


def _check_sequence(name: str, value: Any) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(
            f"`{name}` must be a sequence (like tuple or list) instead of {type(value).__name__}"
        )


def _with_place(initializer: Any, info: PartitionInfo) -> Any:
    """The initializer, told where the part lies if it wants to know."""
    if initializer is None:
        return None
    made: Any = initializer() if inspect.isclass(initializer) else initializer
    try:
        parameters = inspect.signature(made).parameters
    except (TypeError, ValueError):
        return made
    if "partition_info" not in parameters:
        return made

    def initialize(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return made(shape, dtype=dtype, partition_info=info)

    return initialize


def _partitions(partitioner: Partitioner, shape: list[int], dtype: DType) -> list[int]:
    found = partitioner(shape=TensorShape(shape), dtype=dtype)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise ValueError(f"Partitioner must return a sequence, but saw: {found}")
    if len(found) != len(shape):
        raise ValueError(
            "Partitioner returned a partition list that does not match the Variable's rank: "
            f"{found} vs. {shape}"
        )
    if any(n < 1 for n in found):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {found}")
    return [int(n) for n in found]


def _cut(partitions: list[int]) -> tuple[int, int]:
    """(axis, number of parts)."""
    axes = [i for i, n in enumerate(partitions) if n > 1]
    if len(axes) > 1:
        raise ValueError(
            f"Cannot slice this variable along more than one dimension: partitions: {partitions}"
        )
    axis = axes[0] if axes else 0
    return axis, partitions[axis]


def _slices(shape: list[int], count: int, axis: int) -> Iterator[tuple[list[int], list[int]]]:
    """(offset, shape) of each part; the first ones get what does not divide evenly."""
    least, excess = divmod(shape[axis], count)
    offset = [0] * len(shape)
    for i in range(count):
        size = list(shape)
        size[axis] = least + (i < excess)
        yield list(offset), size
        offset[axis] += size[axis]
