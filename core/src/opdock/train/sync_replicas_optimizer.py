"""An optimizer around another one that waits for the gradients of several replicas.

What a replica runs and what the chief runs meet in two places only. Gradients go through one
accumulator a variable, which drops those of an earlier global step. Permission to go on comes back
through a queue of tokens, each the global step after an update, one for each gradient that the
next update needs. The chief's part runs in a thread of a queue runner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock import dtypes
from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, device, name_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import global_variables, report_uninitialized_variables
from opdock.ops import control
from opdock.ops.composed.accumulators import (
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
)
from opdock.ops.composed.queues import FIFOQueue
from opdock.ops.fill import fill
from opdock.ops.state import assign
from opdock.train.around import around_another
from opdock.train.loops.hook import SessionRunHook
from opdock.train.loops.session_manager import what_is_missing
from opdock.train.optimizer import Optimizer
from opdock.train.queue_runner import QueueRunner

__all__ = ["SyncReplicasOptimizer"]


@around_another
class SyncReplicasOptimizer(Optimizer):
    """Averages the gradients of several replicas, and updates the variables once for all of them.

    Each replica runs the train op as if it were alone; the hook of `make_session_run_hook` does
    what else is needed. Where there are more replicas than gradients to average, the slowest are
    dropped; where there are fewer, each works at several batches for one update.

    When a chief's session ends, its thread still waits for gradients: closing a monitored session
    takes as long as its `stop_grace_period_secs`, as in TF.

    Args:
        opt: the optimizer that computes gradients and applies their averages.
        replicas_to_aggregate: how many gradients make an update.
        total_num_replicas: how many replicas there are; as many by default.
        variable_averages: an `ExponentialMovingAverage` to apply after each update.
        variables_to_average: the variables for it.
        use_locking: whether concurrent updates of a variable exclude each other.
        name: a name for the operations.

    Attributes:
        local_step_init_op: what a replica runs first; made by `apply_gradients`, as the others.
        chief_init_op: what the chief runs in its place.
        ready_for_local_init_op: the names of variables that must be initialized before.
    """

    local_step_init_op: Any
    chief_init_op: Operation
    ready_for_local_init_op: Tensor

    def __init__(
        self, opt: Any, replicas_to_aggregate: int, total_num_replicas: int | None = None,
        variable_averages: Any = None, variables_to_average: Any = None,
        use_locking: bool = False, name: str = "sync_replicas",
    ) -> None:  # fmt: skip
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        super().__init__(use_locking, name)
        self._opt = opt
        logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate, total_num_replicas,
        )  # fmt: skip
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total_num_replicas
        self._tokens_per_step = max(total_num_replicas, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        # What `apply_gradients` makes.
        self._global_step: Any = None
        self._sync_token_queue: FIFOQueue | None = None
        self._chief_queue_runner: QueueRunner | None = None

    # ------------------------------------------------------------ gradients
    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """What a replica runs: it hands in its gradients and waits until it may go on.

        Args:
            grads_and_vars: (gradient or None, variable) pairs.
            global_step: the variable that counts updates, by which old gradients are known.
            name: not used.

        Returns:
            The replica's local step after the wait.

        Raises:
            ValueError: there is no pair or no global step, or a gradient is of a strange type.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        # Beside an op of this replica, not where the model's variables are.
        with colocate_with(control.no_op()):
            local_step = Variable(
                0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype, name="sync_rep_local_step",
            )  # fmt: skip
        self.local_step_init_op = assign(local_step, global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with name_scope(None, self._name):
            exchanged = [self._exchange(grad, var, local_step) for grad, var in pairs]
            with device(global_step.device), name_scope(""):
                averages = [average for _, average, _ in exchanged]
                update = self._opt.apply_gradients(
                    zip(averages, (var for _, var in pairs), strict=True), global_step
                )
                tokens = FIFOQueue(
                    -1, global_step.dtype.base_dtype, shapes=(),
                    name="sync_token_q", shared_name="sync_token_q",
                )  # fmt: skip
                self._sync_token_queue = tokens
                self._chief_queue_runner = self._make_chief_queue_runner(tokens, update)
                with control_dependencies([put for put, _, _ in exchanged if put is not None]):
                    token = tokens.dequeue()
                train_op = assign(local_step, token)
            self.chief_init_op = self._make_chief_init_op([a for _, _, a in exchanged if a])
        return train_op

    def _exchange(
        self, grad: Any, var: Any, local_step: Any
    ) -> tuple[Operation | None, Any, ConditionalAccumulatorBase | None]:
        """A replica's handing in, the average that comes out, and the accumulator between them."""
        if grad is None:
            return None, None, None
        shared_name = f"{var.name}/grad_accum"
        with device(var.device):
            if isinstance(grad, Tensor):
                dense = ConditionalAccumulator(grad.dtype, var.get_shape(), shared_name)
                put = dense.apply_grad(grad, local_step)
                return put, dense.take_grad(self._replicas_to_aggregate), dense
            if not isinstance(grad, IndexedSlices):
                raise ValueError("Unknown grad type!")
            sparse = SparseConditionalAccumulator(grad.dtype, (), shared_name)
            put = sparse.apply_indexed_slices_grad(grad, local_step)
            return put, sparse.take_indexed_slices_grad(self._replicas_to_aggregate), sparse

    def _make_chief_queue_runner(self, tokens: FIFOQueue, update: Any) -> QueueRunner:
        """A thread that updates the variables and hands out tokens, again and again."""
        with control_dependencies([update]):
            sync_op: Any = tokens.enqueue_many((fill([self._tokens_per_step], self._global_step),))
        if self._variable_averages is not None:
            with control_dependencies([sync_op]):
                sync_op = self._variable_averages.apply(self._variables_to_average)
        # A runner closes its queue when it stops. Nobody would open that of the tokens again.
        closed = FIFOQueue(
            1, dtypes.int32, shapes=(), name="dummy_queue", shared_name="dummy_queue"
        )
        return QueueRunner(closed, [sync_op])

    def _make_chief_init_op(self, accumulators: list[ConditionalAccumulatorBase]) -> Operation:
        """The start of the local step and of every accumulator, where that is."""
        moved = []
        for accumulator in accumulators:
            with device(accumulator.accumulator_ref.device):
                moved.append(accumulator.set_global_step(self._global_step, name="SetGlobalStep"))
        op: Operation = control.group(self.local_step_init_op, *moved)
        return op

    # ------------------------------------------------------------ what the chief runs
    def get_chief_queue_runner(self) -> QueueRunner:
        """The runner whose thread updates the variables and lets the replicas go on.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """What the chief runs once, so that replicas may start before the first update.

        Args:
            num_tokens: how many steps; -1 means as many as make an update.

        Raises:
            ValueError: `apply_gradients` has not been called, or the first update would never
                have enough gradients.
        """
        if self._sync_token_queue is None:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} "
                "(needed)"
            )
        if num_tokens <= 0:
            nothing: Operation = control.no_op(name="no_init_tokens")
            return nothing
        with device(self._global_step.device), name_scope(""):
            return self._sync_token_queue.enqueue_many((fill([num_tokens], self._global_step),))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that initializes a replica's session and, on the chief, starts the updates.

        Args:
            is_chief: whether this replica is the one that updates the variables.
            num_tokens: see `get_init_tokens_op`.
        """
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Runs what an optimizer has for a new session of a replica."""

    def __init__(
        self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int
    ) -> None:
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._init_ops: list[Any] = []
        self._q_runner: QueueRunner | None = None

    def begin(self) -> None:
        optimizer = self._sync_optimizer
        if optimizer._sync_token_queue is None:
            raise ValueError(
                "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
            )
        if self._is_chief:
            self._q_runner = optimizer.get_chief_queue_runner()
            tokens = optimizer.get_init_tokens_op(self._num_tokens)
            self._init_ops = [optimizer.chief_init_op, tokens]
        else:
            self._init_ops = [optimizer.local_step_init_op]

    def after_create_session(self, session: Any, coord: Any) -> None:
        missing = what_is_missing(
            self._sync_optimizer.ready_for_local_init_op, session,
            "Model is not ready for SyncReplicasOptimizer local init.",
        )  # fmt: skip
        if missing is not None:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {self._init_ops[0].name}, error: {missing}"
            )
        for op in self._init_ops:  # one by one: tokens hold the step that the first op reads
            session.run(op)
        if self._q_runner is not None:
            self._q_runner.create_threads(session, coord=coord, daemon=True, start=True)
