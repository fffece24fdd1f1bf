"""`tf.test`: a unittest.TestCase for graphs, and the gradient checker."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import random
import re
import shutil
import socket
import tempfile
import unittest
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from opdock import errors
from opdock.api.benchmark import Benchmark, benchmark_config, benchmarks_main
from opdock.autodiff.checker import compute_gradient, compute_gradient_error
from opdock.eager.values import values_of
from opdock.graph.nodes.devicespec import canonical_name
from opdock.graph.nodes.graph import Graph, begin_anew
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.nodes.seeds import set_random_seed
from opdock.runtime.session import Session
from opdock.summary.recording import forget_default_writer
from opdock.util.assertions import ArrayAssertions, CapturedWrites, CheckedThread
from opdock.util.graph_equality import assert_equal_graph_def
from opdock.util.stubbing import StubOutForTesting
from opdock.version import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER

_SEED = 87654321


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling script, or its benchmarks if `--benchmarks=REGEX` asks.

    Args:
        argv: the arguments; the command line's by default.
    """

    def tests() -> None:
        unittest.main(argv=argv)

    benchmarks_main(tests, argv)


def is_built_with_cuda() -> bool:
    """Whether an installed backend serves CUDA devices."""
    return any("CUDA" in name or "GPU" in name for name in _device_names())


def is_built_with_rocm() -> bool:
    """False: no backend serves ROCm."""
    return False


def is_built_with_gpu_support() -> bool:
    """Whether an installed backend serves GPUs."""
    return is_built_with_cuda()


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether a session would find a GPU.

    Args:
        cuda_only: count only GPUs that a CUDA backend serves.
        min_cuda_compute_capability: accepted for TF's signature; devices do not tell theirs.
    """
    wanted = ":CUDA:" if cuda_only else ":GPU:"
    return any(wanted in name.upper() for name in _device_names())


def gpu_device_name() -> str:
    """The name of the first GPU, "/device:GPU:0", or "" without one."""
    for name in _device_names():
        if ":GPU:" in name.upper():
            return name[name.upper().index("/DEVICE:") :]
    return ""


def _device_names() -> list[str]:
    with Session(graph=Graph()) as session:
        return [device.name for device in session.list_devices()]


@functools.cache
def get_temp_dir() -> str:
    """A directory for the files of tests, made for this process and removed at its end.

    Its name begins with $TEST_TMPDIR, if there is one.
    """
    prefix = os.environ.get("TEST_TMPDIR") or "opdock_test_"
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    made = tempfile.mkdtemp(prefix=prefix)
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(folder: str, owner: int) -> None:
    """Removes a folder at the end of the process that made it, not at those forked from it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def test_src_dir_path(relative_path: str) -> str:
    """A path below $TEST_SRCDIR, where a build system put the sources.

    Args:
        relative_path: a path from there.
    """
    return os.path.join(os.environ.get("TEST_SRCDIR", os.getcwd()), relative_path)


class _AtOnce:
    """Stands for a session where operations have run as they were made.

    Args:
        evaluate: tells values.
    """

    def __init__(self, evaluate: Callable[[Any], Any]) -> None:
        self._evaluate = evaluate

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:  # fmt: skip
        """The values of tensors.

        Raises:
            RuntimeError: there are other arguments, which mean nothing here.
        """
        if feed_dict or options is not None or run_metadata is not None:
            raise RuntimeError(
                "Optional args and feed_dict are not supported when eager execution is enabled (in "
                "this case, sess.run(t) is shorthand for t.numpy())"
            )
        return self._evaluate(fetches)


class TestCase(ArrayAssertions):
    """Abseil's TestCase with sessions and assertions on arrays.

    Before each test the seeds of Python, NumPy and the graph are set and the default graph is
    emptied. Assertions evaluate tensors in the default session.
    """

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._cached: Session | None = None
        self._cached_with: dict[str, Any] = {}
        self._tempdir: str | None = None
        self._threads: list[CheckedThread] = []

    def setUp(self) -> None:  # noqa: D102
        self._clear_cached_session()
        self._threads = []
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002 - the generator that TF1 tests use
        begin_anew()
        set_random_seed(_SEED)
        forget_default_writer()

    def tearDown(self) -> None:  # noqa: D102
        for thread in self._threads:
            thread.check_termination()
        self._clear_cached_session()

    # ------------------------------------------------------------ sessions
    def get_temp_dir(self) -> str:
        """A directory of this test alone, removed when the process ends."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session | None]:  # fmt: skip
        """A session that is the default inside the block; see `cached_session` to keep one.

        None where operations run as they are made.

        Args:
            graph: the graph, the default graph when absent.
            config: a ConfigProto; soft placement is on by default.
            use_gpu: leave placement to the session; otherwise ops go to the CPU.
            force_gpu: put all ops on a GPU.
        """
        if graph is None and executing_eagerly():
            yield None
            return
        with Session(graph=graph, config=_config(config)) as session:
            with _placed(session.graph, use_gpu, force_gpu):
                yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Session | _AtOnce]:  # fmt: skip
        """The one session of this test, made on first use; see `session` for the arguments.

        Where operations run as they are made, it is something whose `run` tells their values.

        Raises:
            ValueError: it was made with other arguments.
        """
        if executing_eagerly():
            yield _AtOnce(self.evaluate)
            return
        given = {"graph": graph, "config": config, "force_gpu value": force_gpu}
        if self._cached is not None:
            for argument, value in given.items():
                if self._cached_with[argument] is not value:
                    raise ValueError(
                        f"The {argument} used to get the cached session is different than the one "
                        "that was used to create the session. Maybe create a new session with "
                        "self.session()"
                    )
        with self._kept_session(given, use_gpu) as session:
            yield session

    @contextlib.contextmanager
    def _kept_session(self, given: dict[str, Any], use_gpu: bool) -> Iterator[Session]:
        """The one session of this test, whatever it was made with."""
        if self._cached is None:
            self._cached = Session(graph=given["graph"], config=_config(given["config"]))
            self._cached_with = given
        session = self._cached
        with (
            session.graph.as_default(),
            session.as_default(),
            _placed(session.graph, use_gpu, given["force_gpu value"]),
        ):
            yield session

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> contextlib.AbstractContextManager[Any]:  # fmt: skip
        """`session` with a graph, else `cached_session`; the older name of both."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        if graph is not None or executing_eagerly():
            return self.session(graph, config, use_gpu, force_gpu)
        given = {"graph": graph, "config": config, "force_gpu value": force_gpu}
        return self._kept_session(given, use_gpu)

    def _clear_cached_session(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors, in the default session or else the test's one."""
        from opdock.graph.nodes.default_session import get_default_session

        if executing_eagerly():
            return values_of(tensors)
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as kept:
            return kept.run(tensors)

    # ------------------------------------------------------------ threads and streams
    def checkedThread(
        self, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> CheckedThread:
        """A thread whose failure is the test's, and which the test has to join."""
        thread = CheckedThread(self, target, args or (), kwargs or {})
        self._threads.append(thread)
        return thread

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[CapturedWrites]:
        """What is written to a stream with a file descriptor while the block runs.

        Args:
            stream: `sys.stdout`, `sys.stderr` or their like.
        """
        stream.flush()
        handle, path = tempfile.mkstemp(dir=self.get_temp_dir())
        kept = os.dup(stream.fileno())
        try:
            os.dup2(handle, stream.fileno())
            yield CapturedWrites(path)
        finally:
            stream.flush()
            os.dup2(kept, stream.fileno())
            os.close(kept)
            os.close(handle)

    # ------------------------------------------------------------ text and protobufs
    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Asserts that two device names, specs or None mean the same, however they are spelt."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(first, second, f"Devices {first} and {second} are not equal. {msg}")

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """Asserts that a message equals another one, or one given as text."""
        from google.protobuf import text_format

        from opdock.util.proto_compare import ProtoEq, assertProtoEqual

        expected = expected_message_maybe_ascii
        if isinstance(expected, str | bytes):
            expected = text_format.Parse(expected, type(message)())
        if not ProtoEq(expected, message):
            assertProtoEqual(self, expected, message, normalize_numbers=True, msg=msg)

    def assertProtoEqualsVersion(
        self, expected: str, actual: Any, producer: int = GRAPH_DEF_VERSION,
        min_consumer: int = GRAPH_DEF_VERSION_MIN_CONSUMER, msg: str | None = None,
    ) -> None:  # fmt: skip
        """Asserts that a GraphDef equals one given as text, which leaves the versions out."""
        versions = f"versions {{ producer: {producer} min_consumer: {min_consumer} }}\n"
        self.assertProtoEquals(versions + expected, actual, msg)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Asserts that the block raises an OpError whose message matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override] # TF takes patterns as well
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Asserts that the block raises an exception that matches.

        Args:
            exception_type: the class.
            expected_err_re_or_predicate: a pattern to find in the message (and, for an OpError,
                the name of its op), or a function of the exception.
        """
        matches: Callable[[Any], Any]
        if callable(expected_err_re_or_predicate):
            matches = expected_err_re_or_predicate
        else:
            pattern = re.compile(expected_err_re_or_predicate)

            def matches(error: Any) -> bool:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op = getattr(error, "op", None)
                return (
                    pattern.search(text + (f"\nCaused by op {op.name!r}" if op is not None else ""))
                    is not None
                )

        try:
            yield
        except exception_type as e:
            if not matches(e):
                raise AssertionError(f"Exception of type {type(e)}: {e} does not match") from e
            return
        self.fail(f"{exception_type.__name__} not raised")


def _config(config: Any) -> Any:
    from opdock.io.protos import ConfigProto

    return ConfigProto(allow_soft_placement=True) if config is None else config


@contextlib.contextmanager
def _placed(graph: Graph, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if force_gpu:
        with graph.device("/device:GPU:0"):
            yield
    elif use_gpu:
        yield
    else:
        with graph.device("/device:CPU:0"):
            yield


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None,
    ps_config: Any = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Servers of this process that make up a cluster, for tests.

    Args:
        num_workers: how many tasks the job `worker` has.
        num_ps: how many the job `ps` has.
        protocol: see `tf.train.Server`.
        worker_config: the settings of the workers.
        ps_config: those of the others.

    Returns:
        The servers of the workers, and those of the others.
    """
    from opdock.train.server_lib import ClusterSpec, Server

    jobs = {"worker": (num_workers, worker_config), "ps": (num_ps, ps_config)}
    cluster = ClusterSpec(
        {job: [f"localhost:{port}" for port in _free_ports(n)] for job, (n, _) in jobs.items()}
    )
    workers, others = (
        [
            Server(cluster, job_name=job, task_index=i, protocol=protocol, config=config)
            for i in range(n)
        ]
        for job, (n, config) in jobs.items()
    )
    return workers, others


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


__all__ = [
    "Benchmark", "StubOutForTesting", "TestCase", "assert_equal_graph_def", "benchmark_config",
    "compute_gradient", "compute_gradient_error", "create_local_cluster", "get_temp_dir",
    "gpu_device_name", "is_built_with_cuda",
    "is_built_with_gpu_support", "is_built_with_rocm", "is_gpu_available", "main", "mock",
    "test_src_dir_path",
]  # fmt: skip
