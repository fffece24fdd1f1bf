"""`tf.train.SessionManager`: a session whose variables are restored, initialized or waited for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import errors
from opdock.api import logging
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.runtime.session import Session
from opdock.train.checkpoint_management import get_checkpoint_state

__all__ = ["SessionManager"]


class SessionManager:
    """Makes sessions in which a model is ready to be used.

    Args:
        local_init_op: run in every new session.
        ready_op: a string tensor, empty when the model is ready, else the names of what is not.
        ready_for_local_init_op: a string tensor, empty when `local_init_op` may run.
        graph: the model's graph, the default one when absent.
        recovery_wait_secs: the seconds between two looks whether the model is ready.
        local_init_run_options: RunOptions for `local_init_op`.

    Raises:
        ValueError: there is a `ready_for_local_init_op` and no `local_init_op`.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options

    # ------------------------------------------------------------ a session of one's own
    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """A session with the variables of the latest checkpoint, or freshly initialized ones.

        Args:
            master: the session's target.
            init_op: initializes the model if there is no checkpoint.
            saver: restores the checkpoint.
            checkpoint_dir: a directory, whose latest checkpoint is restored.
            checkpoint_filename_with_path: a checkpoint in place of a directory.
            wait_for_checkpoint: whether to wait for a checkpoint.
            max_wait_secs: for how long.
            config: a ConfigProto for the session.
            init_feed_dict: what to feed to `init_op`.
            init_fn: called with the session after `init_op`.

        Raises:
            RuntimeError: the model is not ready afterwards, or there is nothing that would make it.
            ValueError: a directory and a checkpoint are given.
        """
        sess, restored = self._restored_session(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config,
        )  # fmt: skip
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                sess.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(sess)
        missing = self._try_run_local_init_op(sess)
        if missing is not None:
            raise RuntimeError(
                "Init operations did not make model ready for local_init.  Init op: "
                f"{_name(init_op)}, init fn: {init_fn}, error: {missing}"
            )
        missing = self._model_missing(sess)
        if missing is not None:
            raise RuntimeError(
                f"Init operations did not make model ready.  Init op: {_name(init_op)}, init fn: "
                f"{init_fn}, local_init_op: {self._local_init_op}, error: {missing}"
            )
        return sess

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """A session with the variables of the latest checkpoint, if there is one.

        Args:
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint: see
                `prepare_session`.
            max_wait_secs, config: see `prepare_session`.

        Returns:
            The session, and whether the model was restored and is ready.

        Raises:
            ValueError: a directory and a checkpoint are given.
        """
        sess, restored = self._restored_session(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config,
        )  # fmt: skip
        missing_local = self._try_run_local_init_op(sess)
        if not restored:
            return sess, False
        source = checkpoint_dir or checkpoint_filename_with_path
        if missing_local is not None:
            logging.info(
                "Restoring model from %s did not make model ready for local init: %s",
                source, missing_local,
            )  # fmt: skip
            return sess, False
        missing = self._model_missing(sess)
        if missing is not None:
            logging.info("Restoring model from %s did not make model ready: %s", source, missing)
            return sess, False
        logging.info("Restored model from %s", source)
        return sess, True

    def _restored_session(
        self,
        master: str,
        saver: Any,
        directory: str | None,
        path: str | None,
        wait: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, bool]:
        """A session, and whether a checkpoint was restored in it."""
        sess = Session(master, graph=self._graph, config=config)
        if directory and path:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        if not saver or not (directory or path):
            return sess, False
        if path:
            _restore(saver, sess, path)
            return sess, True
        waited = 0.0
        state = get_checkpoint_state(directory)
        while not state or not state.model_checkpoint_path:
            if not wait or waited >= max_wait_secs:
                return sess, False
            logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = get_checkpoint_state(directory)
        _restore(saver, sess, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return sess, True

    # ------------------------------------------------------------ a session that others make ready
    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = float("inf")
    ) -> Session:
        """A session of a model that somebody else initializes or restores.

        Args:
            master: the session's target.
            config: a ConfigProto for the session.
            max_wait_secs: how long to wait.

        Raises:
            DeadlineExceededError: the model was not ready in time.
        """
        limit = float("inf") if max_wait_secs is None else max_wait_secs
        start = time.monotonic()
        while True:
            sess = Session(master, graph=self._graph, config=config)
            missing = None
            missing_local = self._try_run_local_init_op(sess)
            if missing_local is None:
                missing = self._model_missing(sess)
                if missing is None:
                    return sess
            with contextlib.suppress(Exception):  # it is of no use any more
                sess.close()
            if time.monotonic() - start + self._recovery_wait_secs > limit:
                raise errors.DeadlineExceededError(
                    None, None, f"Session was not ready after waiting {int(limit)} secs."
                )
            logging.info(
                "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
                missing_local, missing,
            )  # fmt: skip
            time.sleep(self._recovery_wait_secs)

    # ------------------------------------------------------------ what is missing
    def _model_missing(self, sess: Session) -> str | None:
        return what_is_missing(self._ready_op, sess, "Model not ready")

    def _try_run_local_init_op(self, sess: Session) -> str | None:
        """Runs the local initialization; what is missing for it, or None when it was run."""
        if self._local_init_op is None:
            return None
        missing = what_is_missing(
            self._ready_for_local_init_op, sess, "Model not ready for local init"
        )
        if missing is None:
            logging.info("Running local_init_op.")
            sess.run(self._local_init_op, options=self._local_init_run_options)
            logging.info("Done running local_init_op.")
        return missing


def what_is_missing(ready_op: Any, sess: Session, what: str) -> str | None:
    """What a ready op says is missing, or None."""
    if ready_op is None:
        return None
    try:
        value = sess.run(ready_op)
    except errors.FailedPreconditionError as e:
        if "uninitialized" not in str(e):
            logging.warning("%s : error [%s]", what, str(e))
            raise
        return str(e)
    # None is an operation's value; an integer is what checks gave before they gave names.
    if value is None or value.dtype == np.int32 or value.size == 0:
        return None
    return "Variables not initialized: " + ", ".join(name.decode() for name in value)


def _restore(saver: Any, sess: Session, path: str) -> None:
    """Restores a checkpoint.

    Raises:
        DataLossError: a file of it is cut off. The saver calls that OutOfRangeError, which training
            takes for the end of its input, and so for a good one.
    """
    try:
        saver.restore(sess, path)
    except errors.OutOfRangeError as e:
        raise errors.DataLossError(e.node_def, e.op, e.message) from e


def _name(op: Any) -> str:
    """How an error calls an initializer."""
    if op is None:
        return "None"
    return str(getattr(op, "name", f"<no name for {type(op)}>"))
