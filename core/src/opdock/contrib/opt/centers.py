"""Optimizers of workers that train variables of their own, and meet at central ones now and then.

A custom getter makes three variables of each trainable one: the worker's own, which the model uses
and optimizers train; the central one, which all workers share; and, where the algorithm needs it,
one more of the worker's.

They meet in a branch of a `cond`. A session does not split a branch between tasks: where central
variables are those of another task, as of a parameter server, it raises UnimplementedError. Workers
whose sessions are of one server share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Final

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, device, name_scope
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.partitioned import parts_of
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.graph.variables.variable_scope import get_variable
from opdock.ops import control
from opdock.ops.arithmetic import mod
from opdock.ops.compare import equal
from opdock.ops.composed.accumulators import ConditionalAccumulator
from opdock.ops.composed.queues import FIFOQueue
from opdock.ops.fill import fill, zeros_like
from opdock.ops.loss import l2_loss
from opdock.ops.state import assign, assign_add, assign_sub
from opdock.ops.sums import add_n
from opdock.train.around import around_another
from opdock.train.loops.hook import SessionRunHook
from opdock.train.optimizer import Optimizer
from opdock.train.saveable import names_of
from opdock.train.saver import Saver

__all__ = [
    "AGNCustomGetter", "AGNOptimizer", "ElasticAverageCustomGetter", "ElasticAverageOptimizer",
    "ModelAverageCustomGetter", "ModelAverageOptimizer",
]  # fmt: skip

GLOBAL_VARIABLE_NAME: Final = "global_center_variable"
LOCAL_VARIABLE_NAME: Final = "local_center_variable"
GRAD_VARIABLE_NAME: Final = "grad_variable"


# ---------------------------------------------------------------- variables
class _Getter:
    """A custom getter that makes trainable variables a worker's own, with a central one for each.

    Args:
        worker_device: where the worker's own variables are.
    """

    # The scope of the variables that stand beside the worker's own; None where there are none.
    beside: ClassVar[str | None] = None

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device
        self._global_map: dict[Any, Any] = {}
        self._beside_map: dict[Any, Any] = {}

    def __call__(
        self, getter: Callable[..., Any], name: str, trainable: bool, collections: Any,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The worker's own variable, or what is not trainable as it was asked for."""
        if not trainable:
            local = GraphKeys.LOCAL_VARIABLES in (collections or ())
            with device(self._worker_device) if local else nullcontext():
                return getter(name, *args, trainable=trainable, collections=collections, **kwargs)

        def make(name: str, kind: str, trainable: bool = False) -> Any:
            return getter(name, *args, trainable=trainable, collections=[kind], **kwargs)

        with device(self._worker_device):
            own = make(name, GraphKeys.LOCAL_VARIABLES, trainable=True)
        if kwargs.get("reuse") is True:
            return own
        self._note(self._global_map, own, self._central(own, name, make))
        if self.beside is not None:
            with device(self._worker_device):
                other = make(f"{self.beside}/{name}", GraphKeys.LOCAL_VARIABLES)
            self._note(self._beside_map, own, other)
        return own

    def _central(self, own: Any, name: str, make: Callable[..., Any]) -> Any:
        return make(f"{GLOBAL_VARIABLE_NAME}/{name}", GraphKeys.GLOBAL_VARIABLES)

    def _note(self, into: dict[Any, Any], own: Any, other: Any) -> None:
        into.update(zip(parts_of(own), parts_of(other), strict=True))


class AGNCustomGetter(_Getter):
    """The variables of an `AGNOptimizer`: the workers have sums of gradients beside their own."""

    beside = GRAD_VARIABLE_NAME


class ElasticAverageCustomGetter(_Getter):
    """The variables of an `ElasticAverageOptimizer`: workers keep what the central ones were."""

    beside = LOCAL_VARIABLE_NAME


class ModelAverageCustomGetter(_Getter):
    """The variables of a `ModelAverageOptimizer`; the central ones start as the chief's own."""

    def _central(self, own: Any, name: str, make: Callable[..., Any]) -> Any:
        return Variable(
            own.initialized_value(), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES],
            name=f"{GLOBAL_VARIABLE_NAME}/{name}",
        )  # fmt: skip


# ---------------------------------------------------------------- what they have in common
@around_another
class _Centered(Optimizer):
    """An optimizer of a worker's own variables, which meet the central ones now and then."""

    def __init__(
        self, opt: Any, getter: _Getter, period: int, use_locking: bool, name: str
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._period = period
        self._global_map = getter._global_map
        self._beside_map = getter._beside_map
        self._local_step = get_variable(
            "local_step", initializer=0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )

    def _central(self, variables: Iterable[Any]) -> list[Any]:
        return [self._global_map[v] for v in variables]

    def _beside(self, variables: Iterable[Any]) -> list[Any]:
        return [self._beside_map[v] for v in variables]

    def _train_own(self, pairs: list[tuple[Any, Any]]) -> Any:
        """Applies gradients to the worker's own variables; what the optimizer keeps is its too."""
        with variable_creator_scope(_as_local):
            return self._opt.apply_gradients(pairs)

    def _then(self, done: Sequence[Any], meet: Callable[[], Any]) -> Any:
        """Counts a step after others, and calls `meet` in every `period`th."""
        with control_dependencies(done):
            step = assign_add(self._local_step, 1, name="local_step_update")
        with control_dependencies([step.op]):
            due = equal(mod(step, self._period), 0)
        return control.cond(due, meet, control.no_op)

    def _pulled(self, variables: Sequence[Any]) -> list[Any]:
        """Has the worker's own variables take the values of the central ones."""
        taken = []
        for own, central in zip(variables, self._central(variables), strict=True):
            with device(own.device):
                taken.append(assign(own, central.read_value()))
        return taken

    def _start(self) -> list[Any]:
        """What a worker starts with: its own variables as the central ones are.

        Raises:
            ValueError: there are no such variables.
        """
        own = trainable_variables()
        if not own:
            raise ValueError("The lists of local and global center variables should not be empty")
        return self._pulled(own)


def _as_local(next_creator: Callable[..., Any], collections: Any = None, **kwargs: Any) -> Any:
    kept = [key for key in collections or () if key != GraphKeys.GLOBAL_VARIABLES]
    return next_creator(collections=[*kept, GraphKeys.LOCAL_VARIABLES], **kwargs)


def _counted(global_step: Any) -> list[Any]:
    if global_step is None:
        return []
    with colocate_with(global_step.op):
        return [assign_add(global_step, 1)]


def _split(grads_and_vars: Iterable[tuple[Any, Any]]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """The pairs as a list, and the variables that have gradients."""
    pairs = list(grads_and_vars)
    return pairs, [var for grad, var in pairs if grad is not None]


class _StartHook(SessionRunHook):
    """Runs what a worker starts with in its new session."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._op: Any = None

    def begin(self) -> None:
        self._op = self._start()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._op)


# ---------------------------------------------------------------- the optimizers
class AGNOptimizer(_Centered):
    """Accumulated gradient normalization: workers send the mean of their last gradients.

    A worker trains variables of its own for some steps; then the mean of its gradients is applied
    to the central variables, and its own take their values. See https://arxiv.org/abs/1710.02368.

    Args:
        optimizer: the optimizer that applies gradients, here and there.
        num_worker: the number of workers.
        custom_getter: the `AGNCustomGetter` that made the variables.
        communication_period: the number of steps between two meetings.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self, optimizer: Any, num_worker: int, custom_getter: AGNCustomGetter,
        communication_period: int = 10, use_locking: bool = True, name: str = "AGNOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(optimizer, custom_getter, communication_period, use_locking, name)
        self._num_worker = num_worker

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients to the worker's own variables, and now and then to the central ones."""
        pairs, own = _split(grads_and_vars)
        central, sums = self._central(own), self._beside(own)
        trained = self._train_own(pairs)
        # Variables are the graph's, not the branch's: they are made before it.
        self._opt._make_slots(central)
        gradients = [convert_to_tensor(grad) for grad, _ in pairs if grad is not None]
        added = [assign_add(s, grad) for s, grad in zip(sums, gradients, strict=True)]

        def meet() -> Any:
            means = [s.read_value() / self._period for s in sums]
            applied = self._opt.apply_gradients(list(zip(means, central, strict=True)))
            with control_dependencies([applied]):
                cleared = [assign(s, zeros_like(s)) for s in sums]
                return control.group(*_counted(global_step), *self._pulled(own), *cleared)

        return self._then([trained, *added], meet)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation after which a worker's own variables equal the central ones.

        Args:
            task_index: the worker's number.

        Raises:
            ValueError: there are no such variables.
        """
        started = self._start()
        cleared = [assign(s, zeros_like(s)) for s in self._beside(trainable_variables())]
        return control.group(*started, *cleared)

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs `get_init_op` in a new session."""
        return _StartHook(lambda: self.get_init_op(task_index))


class ElasticAverageOptimizer(_Centered):
    """Elastic averaging: the workers' variables and the central ones pull each other.

    See https://arxiv.org/abs/1412.6651.

    Args:
        opt: the optimizer of the worker's own variables.
        num_worker: the number of workers.
        ea_custom_getter: the `ElasticAverageCustomGetter` that made the variables.
        communication_period: the number of steps between two meetings.
        moving_rate: the share of the difference by which both move when they meet; by default
            0.9 / `communication_period` / `num_worker`.
        rho: the weight of the distance in the loss; by default `moving_rate` by the learning rate.
        use_locking, name: see `Optimizer`.
        synchronous: whether the workers wait for each other before they start.
    """

    BETA = 0.9

    def __init__(
        self, opt: Any, num_worker: int, ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10, moving_rate: float | None = None, rho: float | None = None,
        use_locking: bool = True, synchronous: bool = False, name: str = "ElasticAverageOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(opt, ea_custom_getter, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._synchronous = synchronous
        if moving_rate is None:
            moving_rate = self.BETA / communication_period / num_worker
        self._moving_rate = moving_rate
        self._rho = moving_rate / opt._learning_rate if rho is None else rho

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None, colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:  # fmt: skip
        """The gradients of the loss and of the distance from the centre; see `Optimizer`."""
        own = var_list or trainable_variables()
        apart = [l2_loss(v - c) for v, c in zip(own, self._beside(own), strict=True)]
        return super().compute_gradients(
            loss + self._rho * add_n(apart), own, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, grad_loss,
        )  # fmt: skip

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients to the worker's own variables, and has them meet the central ones."""
        pairs, own = _split(grads_and_vars)
        trained = self._train_own(pairs)

        def meet() -> Any:
            moved = []
            for var, kept, central in zip(own, self._beside(own), self._central(own), strict=True):
                with device(var.device):
                    pull = self._moving_rate * (
                        var.read_value() - assign(kept, central.read_value())
                    )
                    moved.append(assign_sub(var, pull))
                with device(central.device):
                    moved.append(assign_add(central, pull))
            return control.group(*moved, *_counted(global_step))

        return self._then([trained], meet)

    def get_init_op(self, task_index: int) -> Operation:
        """An operation after which a worker's own variables equal the central ones.

        Args:
            task_index: the worker's number.

        Raises:
            ValueError: there are no such variables.
        """
        started = self._start()
        own = trainable_variables()
        for kept, central in zip(self._beside(own), self._central(own), strict=True):
            started.append(assign(kept, central.read_value()))
        if not self._synchronous:
            return control.group(*started)
        queues = [
            FIFOQueue(
                self._num_worker, [dtypes.bool], shapes=[[]],
                shared_name=f"variable_init_sync_queue{i}",
            )
            for i in range(self._num_worker)
        ]  # fmt: skip
        with control_dependencies(started):
            told = [q.enqueue(False) for i, q in enumerate(queues) if i != task_index]
        return control.group(*told, queues[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """A hook that runs `get_init_op` in a new session."""
        return _StartHook(lambda: self.get_init_op(task_index))

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A Saver that saves the central variables under the names of the workers' own.

        Args:
            var_list: what to save; all trainable variables by default.
            name: of the Saver's ops.
            **kwargs: for `tf.train.Saver`.

        Raises:
            RuntimeError: the custom getter has made no variables.
        """
        if not self._global_map:
            raise RuntimeError(
                "global_center_variable is empty, please make sure this is called after model "
                "created and ElasticAverageCustomGetter is used when declaring you model"
            )
        if var_list is None:
            var_list = trainable_variables()
        given = var_list if isinstance(var_list, dict) else names_of(var_list)
        saved = {}
        for key, value in given.items():
            central = [self._global_map.get(part, part) for part in parts_of(value)]
            saved[key] = central[0] if len(central) == 1 else central
        return Saver(saved, name=name, **kwargs)


class ModelAverageOptimizer(_Centered):
    """Model averaging: every so often all workers go on with the mean of their variables.

    Args:
        opt: the optimizer of the worker's own variables.
        num_worker: the number of workers.
        is_chief: whether this worker sets the central variables.
        ma_custom_getter: the `ModelAverageCustomGetter` that made the variables.
        interval_steps: the number of steps between two meetings.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self, opt: Any, num_worker: int, is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter, interval_steps: int = 100,
        use_locking: bool = True, name: str = "ModelAverageOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(opt, ma_custom_getter, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._chief_init_ops: list[Operation] = []

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients to the worker's own variables, and now and then averages those of all.

        Raises:
            ValueError: there are no variables, or no global step.
        """
        pairs, own = _split(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required")
        trained = self._opt.apply_gradients(pairs)
        central = self._central(own)
        with colocate_with(global_step.op):
            tokens = FIFOQueue(-1, [dtypes.bool], shapes=[[]], shared_name="sync_queue")
        with name_scope(None, f"{self._name}/global"):
            accumulators = [_accumulator(v, c) for v, c in zip(own, central, strict=True)]
        if self._is_chief:
            self._chief_init_ops = [
                a.set_global_step(global_step, name="SetGlobalStep") for a in accumulators
            ]

        def meet() -> Any:
            sent = [
                a.apply_grad(v.read_value(), local_step=global_step)
                for a, v in zip(accumulators, own, strict=True)
            ]
            with control_dependencies(sent):
                if self._is_chief:
                    met = self._average(accumulators, central, global_step, tokens)
                else:
                    met = tokens.dequeue()
            with control_dependencies([met]):
                return control.group(*self._pulled(own))

        return self._then([trained], meet)

    def _average(
        self, accumulators: list[ConditionalAccumulator], central: list[Any], global_step: Any,
        tokens: FIFOQueue,
    ) -> Operation:  # fmt: skip
        """Sets the central variables once all workers have sent theirs, and lets them go on."""
        updated = []
        for accumulator, var in zip(accumulators, central, strict=True):
            with device(var.device):
                updated.append(assign(var, accumulator.take_grad(self._num_worker)))
        with control_dependencies(updated):
            counted = _counted(global_step)
        with control_dependencies(counted), device(global_step.device):
            return tokens.enqueue_many(fill([self._num_worker - 1], False))

    def get_init_op(self) -> Operation:
        """An operation after which a worker's own variables equal the central ones.

        Raises:
            ValueError: there are no such variables.
        """
        return control.group(*self._start())

    def make_session_run_hook(self) -> SessionRunHook:
        """A hook that runs `get_init_op` in a new session, and what the chief has to set up."""

        return _StartHook(lambda: [self.get_init_op(), *self._chief_init_ops])


def _accumulator(own: Any, central: Any) -> ConditionalAccumulator:
    with device(central.device):
        return ConditionalAccumulator(
            own.dtype.base_dtype, shape=own.shape, shared_name=f"{central.name}/var_accum"
        )
