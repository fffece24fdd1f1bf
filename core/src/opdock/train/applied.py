"""Updates of a variable by one op of `ops.training`: what most optimizers do.

It is the base of `Optimizer`, so that each optimizer descends from that directly, as in TF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get


class AppliedUpdates:
    """The update of a variable as one Apply op.

    An optimizer that does it otherwise overrides the four `_apply` methods that it needs.

    Attributes:
        _update_op: the name in the ops' table ("Momentum" for ApplyMomentum).
        _slot_order: the names of its slots in the op's order.
        _tensor_names: what TF calls the tensor of a hyper-parameter, where it is not
            "_<name>_tensor": programs subclass optimizers and read these attributes.
    """

    _update_op = ""
    _slot_order: tuple[str, ...] = ()
    _tensor_names: ClassVar[dict[str, str]] = {}
    _flags: dict[str, Any]

    if TYPE_CHECKING:
        _use_locking: bool

        def get_slot(self, var: Any, name: str) -> Any:
            """See `Optimizer`."""

        def _call_if_callable(self, param: Any) -> Any: ...

    def __init__(self) -> None:
        self._flags = {}
        self._tensors: dict[str, Any] = {}

    def _hyper(self, **values: Any) -> None:
        """Makes one tensor per hyper-parameter, shared by all updates."""
        self._tensors = {
            k: convert_to_tensor(self._call_if_callable(v), name=k) for k, v in values.items()
        }
        for key, tensor in self._tensors.items():
            setattr(self, self._tensor_names.get(key, f"_{key}_tensor"), tensor)

    def _inputs(self, var: Any) -> list[Any]:
        """The op's inputs between the state and the end; `None` stands for the gradient."""
        raise NotImplementedError

    def _cast(self, name: str, var: Any) -> Any:
        tensor = self._tensors[name]
        wanted = var.dtype.base_dtype
        return tensor if tensor.dtype.base_dtype is wanted else get("Cast")(tensor, DstT=wanted)

    def _holders(self, var: Any, resource: bool) -> list[Any]:
        slots = [self.get_slot(var, n) for n in self._slot_order]
        return [v.handle if resource else v for v in (var, *slots)]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call("Apply", grad, var, None, False)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call("ResourceApply", grad, var, None, True)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._call("SparseApply", grad.values, var, grad.indices, False)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._call("ResourceSparseApply", grad, var, indices, True)

    def _call(self, prefix: str, grad: Any, var: Any, indices: Any, resource: bool) -> Any:
        if not self._update_op:
            raise NotImplementedError
        inputs: list[Any] = []
        for value in self._inputs(var):
            if value is None:
                inputs.append(grad)
                if indices is not None:
                    inputs.append(indices)
            else:
                inputs.append(value)
        done = get(prefix + self._update_op)(
            *self._holders(var, resource), *inputs, use_locking=self._use_locking, **self._flags
        )
        return done if resource else done.op
