"""Settings of all tests, and their order: what takes long begins first, on every worker."""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# An example's time says how busy the machine is, not whether the code is right. A test has the same
# examples in every run, so that what it says of a commit stays true; `explore` looks for new ones.
# Where a test does not say how many, they are a fourth of what it has among those of `make prove`.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("whole", settings.get_profile("explore"), derandomize=True)
settings.register_profile("opdock", settings.get_profile("whole"), max_examples=25)
settings.load_profile("opdock")

# A shell that starts tests in the background has them ignore what they interrupt themselves with.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where bytecode is not kept, every worker compiles all tests, and every process that one of them
# starts compiles opdock, which takes it longer than what it is started for.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# Clusters within one process need no engine, and an installed one would open them to others: only
# its own tests ask for it.
if not any("plugins/ray" in argument for argument in sys.argv):
    os.environ["OPDOCK_DISABLE"] = ",".join(filter(None, (os.environ.get("OPDOCK_DISABLE"), "ray")))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--share 2/3`: the second third of the tests that are asked for."""
    parser.addoption(
        "--share", metavar="K/N", default="1/1", help="every Nth test, from the Kth on"
    )


def _share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests of one share: all shares together have every test once."""
    told = config.getoption("--share")
    part, _, parts = (int(n) if n.isdigit() else 0 for n in told.partition("/"))
    if not 1 <= part <= parts:
        raise pytest.UsageError(f"--share is K/N with 1 <= K <= N, not {told}")
    chosen = items[part - 1 :: parts]
    config.hook.pytest_deselected(items=[i for n, i in enumerate(items) if n % parts != part - 1])
    items[:] = chosen


_begun: dict[str, list[Callable[[], object]]] = {}
"""By the name of a module, what brings its generators of random numbers back to their beginning."""


def _beginnings(module: Any) -> list[Callable[[], object]]:
    """See `_begun`, for a module in which no test has run yet."""
    found: list[Callable[[], object]] = []
    for value in vars(module).values():
        if isinstance(value, np.random.RandomState):
            found.append(functools.partial(value.set_state, value.get_state()))
        elif isinstance(value, np.random.Generator):
            bits = value.bit_generator
            found.append(functools.partial(setattr, bits, "state", bits.state))
        elif isinstance(value, random.Random):
            found.append(functools.partial(value.setstate, value.getstate()))
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test draws is the same in every run, and does not depend on those that ran before it.

    Nor is it another where there is no seed, but in processes of its own, and with `explore`.
    """
    from opdock.util import entropy

    random.seed(0)
    np.random.seed(0)
    if item.config.getoption("--hypothesis-profile") != "explore":
        entropy.drawn = random.Random(item.nodeid).randbytes
    module = item.getparent(pytest.Module)
    if module is not None:
        if module.nodeid not in _begun:
            _begun[module.nodeid] = _beginnings(module.obj)
        for begin in _begun[module.nodeid]:
            begin()


def _ask_again() -> None:
    """Has whether code is generated, which is asked once a process, be asked again."""
    llvm = sys.modules.get("opdock_cpu.jit.llvm")
    if llvm is not None:
        llvm.why_not.cache_clear()


@pytest.fixture
def nothing_beside(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """No code is compiled beside the test, for it or for earlier ones: so what it counts of the
    process, of memory and objects, is its own."""
    monkeypatch.setenv("OPDOCK_JIT", "off")
    compiled = sys.modules.get("opdock_cpu.jit.compiled")
    worker = getattr(compiled, "_worker", None)
    if compiled is not None and worker is not None:
        compiled._queue.put(None)  # it ends there
        worker.join()
    _ask_again()
    yield
    _ask_again()  # the next test may be the first of the process that wants code


def pytest_configure(config: pytest.Config) -> None:
    """`make prove` has all examples of the tests of random inputs."""
    if config.option.markexpr == "prove":
        settings.load_profile("whole")


def pytest_itemcollected(item: pytest.Item) -> None:
    """So these tests are among those of `make prove`, too."""
    of_chance = is_hypothesis_test(getattr(item, "obj", None))
    if of_chance and item.config.option.markexpr == "prove":
        item.add_marker("prove")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests without collections of garbage, and keeps them out of later ones.

    Modules and test items live as long as the process. They are most of its objects, and looking
    through them again and again was a third of the time that it took to make them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


_COSTLY = frozenset({"site", "calm"})
"""Fixtures that take seconds of a processor."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deals the long tests out to the workers.

    Each worker begins with a stretch of the list of its own and takes from the end of another's
    when it is done (`--dist worksteal`), so long tests stand at the front of every stretch, and
    tests that share what is costly to make stand together.
    """
    _share(config, items)
    together: dict[str, list[pytest.Item]] = {}
    rest = []
    for item in items:
        group = item.get_closest_marker("xdist_group")
        # Plugins that are installed for a whole run: by one worker, not by each.
        costly = _COSTLY.intersection(getattr(item, "fixturenames", ()))
        if group is not None or costly:
            name = group.args[0] if group is not None else min(costly)
            together.setdefault(name, []).append(item)
        elif item.get_closest_marker("slow"):
            together[item.nodeid] = [item]
        else:
            rest.append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in sorted(together.values(), key=len):
        tests.sort(key=lambda item: item.get_closest_marker("slow") is None)
        min(hands, key=len).extend(tests)
    # As xdist cuts the list: from the front, each worker its share of what is left.
    left = len(items)
    items.clear()
    for i, hand in enumerate(hands):
        share = left // (workers - i)
        left -= share
        take = max(0, share - len(hand)) if i < workers - 1 else len(rest)
        items += hand + rest[:take]
        del rest[:take]
