"""What libraries ask about distribution, answered for one replica: there are no strategies here."""

from __future__ import annotations

import contextlib
from typing import Any, Final, NoReturn

from opdock import errors
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import colocate_with
from opdock.util import nest


class ReductionV2:
    """How the losses of a batch become one, in the words of TensorFlow 2."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every way."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for what is no way."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


class ReduceOp:
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


def scale_loss_for_distribution(loss_value: Any) -> Any:
    """The loss: it is divided among one replica."""
    return loss_value


def get_loss_reduction() -> str:
    """How replicas' losses would be reduced."""
    return ReduceOp.SUM


def has_strategy() -> bool:
    """Whether a distribution strategy is in scope: never."""
    return False


in_cross_replica_context = has_strategy


class OneReplicaExtended:
    """What optimizers and metrics ask of the strategy: they are the only replica.

    Variables are what they are, and values of all replicas are this one's.
    """

    experimental_require_static_shapes = False
    should_checkpoint = True
    should_save_summary = True
    worker_devices = parameter_devices = ("",)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable is the strategy's: any is."""
        return True

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context in which variables are made where another one is."""
        return colocate_with(colocate_with_variable)

    def update(
        self, var: Any, fn: Any, args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """What a function of a variable gives, made where the variable is."""
        with colocate_with(var):
            result = fn(var, *args, **(kwargs or {}))
        return result if group else nest.map_structure(lambda v: (v,), result)

    def update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """What a function gives that updates variables of an optimizer's own."""
        result = fn(*args, **(kwargs or {}))
        return result if group else nest.map_structure(lambda v: (v,), result)

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where variables of an optimizer's own are: with the first of its variables."""
        return min(var_list, key=lambda v: str(v.name))

    def call_for_each_replica(self, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a function gives, which runs once."""
        return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """A value over all replicas: as it is."""
        return value

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Any, options: Any = None
    ) -> list[Any]:
        """Values over all replicas: as they are."""
        return [value for value, _ in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A value for all replicas."""
        return tensor

    def read_var(self, v: Any) -> Any:
        """The value of a variable."""
        return v.value()

    def value_container(self, value: Any) -> Any:
        """What holds the values of all replicas: the value."""
        return value

    def _in_multi_worker_mode(self) -> bool:
        return False

    def _use_merge_call(self) -> bool:
        return False


class OneReplica:
    """What programs ask of the strategy in scope, where there is none: all of it is one replica."""

    num_replicas_in_sync = 1
    _should_use_with_coordinator = False

    def __init__(self) -> None:
        self.extended = OneReplicaExtended()

    def _in_multi_worker_mode(self) -> bool:
        return False

    def scope(self) -> contextlib.AbstractContextManager[OneReplica]:
        """A context in which variables are made as they are outside of it."""
        return contextlib.nullcontext(self)

    def experimental_run_v2(self, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a function gives, which runs once."""
        return fn(*args, **(kwargs or {}))

    run = experimental_run_v2

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """A dataset over all replicas: as it is."""
        return dataset

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """A value over all replicas: as it is, or reduced along an axis.

        Raises:
            UnimplementedError: there is an axis.
        """
        if axis is not None:
            raise errors.UnimplementedError(
                None, None, "Strategy.reduce along an axis: call tf.reduce_sum or tf.reduce_mean"
            )
        return value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The value of each replica."""
        return (value,)


class ReplicaContext:
    """Where a step runs: in the only replica."""

    num_replicas_in_sync = 1

    def __init__(self) -> None:
        self.strategy = OneReplica()

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The replica's number, a tensor."""
        return convert_to_tensor(0, name="replica_id_in_sync_group")

    def merge_call(self, merge_fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of the strategy and of the values of all replicas."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """A value, or a structure of them, over all replicas: as it is."""
        return value


_ONLY: Final = ReplicaContext()


def get_replica_context() -> ReplicaContext:
    """The context of the only replica."""
    return _ONLY


def get_strategy() -> OneReplica:
    """What stands for the strategy where there is none."""
    return _ONLY.strategy


def maybe_merge_call(fn: Any, strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of the strategy gives, where all replicas are one."""
    return fn(strategy, *args, **kwargs)


def needs_no_merge_call() -> bool:
    """Whether replicas may go on without each other, as one may."""
    return True


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether an estimator's configuration asks for a coordinator; `init_run_config` refuses it."""
    return False


def init_run_config(config: Any, tf_config: Any) -> NoReturn:
    """Refuses a configuration with a strategy.

    Raises:
        UnimplementedError: always.
    """
    raise errors.UnimplementedError(
        None, None,
        "tf.distribute's strategies are not there (train_distribute, eval_distribute): place "
        "devices with tf.device, or leave them to the session",
    )  # fmt: skip
