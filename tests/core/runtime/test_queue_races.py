"""Queues under threads that put, take, give up and close at once: whoever comes first, nothing is
lost, nothing comes twice, order is kept where there is one, and every call ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf
from tests.threads import start

ENDS = (tf.errors.CancelledError, tf.errors.OutOfRangeError)
EACH = 1000  # numbers of one producer are EACH * i + 0, 1, 2, ...


class Kind(NamedTuple):
    """A kind of queue, whose elements are numbers.

    Attributes:
        make: a queue of so many at most.
        element, rows: what is put for a number, and for several.
        rank: of what is taken.
        ordered: whether first in is first out.
        least: room without which a batch would wait for ever.
    """

    make: Callable[[int], Any]
    element: Callable[[Any], Any]
    rows: Callable[[Any], Any]
    rank: int = 0
    ordered: bool = False
    least: int = 2


KINDS = {
    "fifo": Kind(
        lambda n: tf.FIFOQueue(n, [tf.int64], shapes=[[]]), lambda v: v, lambda v: v, ordered=True
    ),
    "shuffle": Kind(
        lambda n: tf.RandomShuffleQueue(n, 1, [tf.int64], shapes=[[]]), lambda v: v, lambda v: v
    ),
    "priority": Kind(
        lambda n: tf.PriorityQueue(n, [tf.int64], shapes=[[]]),
        lambda v: (v % 3, v),
        lambda v: (v % 3, v),
        least=4,
    ),
    "padding": Kind(
        lambda n: tf.PaddingFIFOQueue(n, [tf.int64], shapes=[[None]]),
        lambda v: tf.fill([1 + v % 2], v),
        lambda v: tf.expand_dims(v, 1),
        rank=1,
        ordered=True,
    ),
}


class Race:
    """A queue with its ops, and what became of the calls.

    Attributes:
        put: numbers of calls that succeeded.
        tried: the numbers of each call that ended early.
        got: what each thread took, in its order.
    """

    def __init__(self, kind: Kind, session: Any, capacity: int) -> None:
        self.session, self.kind = session, kind
        queue = kind.make(capacity)
        self.number = tf.placeholder(tf.int64, [])
        self.numbers = tf.placeholder(tf.int64, [None])
        self.enqueue = queue.enqueue(kind.element(self.number))
        self.enqueue_many = queue.enqueue_many(kind.rows(self.numbers))
        self.takes = [queue.dequeue(), queue.dequeue_many(3), queue.dequeue_up_to(4)]
        self.drain = queue.dequeue_up_to(1)
        self.size = queue.size()
        self.closes = {c: queue.close(cancel_pending_enqueues=c) for c in (False, True)}
        self.put: list[int] = []
        self.tried: list[list[int]] = []
        self.got: list[list[int]] = []

    def produce(self, which: int, count: int, dice: random.Random) -> None:
        """Puts so many numbers, one by one and several at once, until the queue is closed."""
        at = 0
        while at < count:
            some = list(range(EACH * which + at, EACH * which + at + dice.choice([1, 1, 2, 5])))
            at += len(some)
            try:
                if len(some) == 1:
                    self.session.run(self.enqueue, {self.number: some[0]})
                else:
                    self.session.run(self.enqueue_many, {self.numbers: some})
            except ENDS:
                self.tried.append(some)
                return
            self.put += some

    def consume(self, dice: random.Random, most: int | None = None, hurried: float = 0.0) -> None:
        """Takes until there is no more, or so often; a part of the calls give up at once."""
        mine: list[int] = []
        self.got.append(mine)
        calls = 0
        while most is None or calls < most:
            calls += 1
            hurry = tf.RunOptions(timeout_in_ms=1) if dice.random() < hurried else None
            try:
                mine += self.numbers_of(self.session.run(dice.choice(self.takes), options=hurry))
            except tf.errors.DeadlineExceededError:
                continue
            except ENDS:
                return

    def numbers_of(self, found: Any) -> list[int]:
        """The numbers that a call took; priorities of a batch have to be in order."""
        if isinstance(found, list):
            priorities, found = found
            assert np.all(np.diff(np.atleast_1d(priorities)) >= 0)
        rows = np.asarray(found)
        # Padded rows hold a number once or twice, and zeros.
        return [int(np.max(row)) for row in (rows if rows.ndim > self.kind.rank else [rows])]

    def left(self) -> list[int]:
        """What is still there when the queue is closed."""
        found: list[int] = []
        while self.session.run(self.size):
            found += self.numbers_of(self.session.run(self.drain))
        return found


def check(race: Race, complete: bool = True) -> None:
    """Whether all came once, in their order; `complete`: nobody gave up what it had taken."""
    found = [n for mine in race.got for n in mine] + race.left()
    assert len(found) == len(set(found)), "a number came twice"
    came, put = set(found), set(race.put)
    assert put <= came or not complete, f"lost: {sorted(put - came)}"
    # A call that was cancelled may have put what there was room for: its first numbers.
    assert came - put <= {n for some in race.tried for n in some}
    for some in race.tried if complete else []:
        begun = [n in came for n in some]
        assert begun == sorted(begun, reverse=True)
    if race.kind.ordered:
        for mine in race.got:
            for which in range(5):
                own = [n for n in mine if n // EACH == which]
                assert own == sorted(own)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_was_put_comes_once(kind: str, seed: int) -> None:
    dice = random.Random(seed)
    with tf.Session() as session:
        race = Race(KINDS[kind], session, KINDS[kind].least + dice.choice([0, 1, 20]))
        takers = [start(lambda i=i: race.consume(random.Random(i))) for i in range(3)]
        givers = [start(lambda i=i: race.produce(i, 20, random.Random(-i))) for i in range(4)]
        for join in givers:
            assert join() is None
        session.run(race.closes[False])
        for join in takers:
            assert join() is None
        check(race)
    assert not race.tried


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_that_closes_at_any_moment_keeps_what_it_took(kind: str, cancels: bool) -> None:
    for seed in range(2):
        dice = random.Random(seed)
        with tf.Graph().as_default(), tf.Session() as session:
            race = Race(KINDS[kind], session, KINDS[kind].least + dice.choice([0, 1, 20]))
            takers = [start(lambda i=i: race.consume(random.Random(i))) for i in range(2)]  # noqa: B023
            givers = [
                start(lambda i=i: race.produce(i, 30, random.Random(-i)))  # noqa: B023
                for i in range(4)
            ]
            # The closing comes after some calls of this thread, wherever the others are by then.
            # It puts: what it took, the others might have taken before it.
            race.produce(4, dice.randrange(12), dice)
            session.run(race.closes[cancels])
            for join in (*givers, *takers):
                assert join() is None
            check(race)


@pytest.mark.parametrize("kind", KINDS)
def test_calls_that_give_up_leave_the_others_alone(kind: str) -> None:
    # A step whose time is over just as it has taken something keeps it from everybody, as TF's do.
    with tf.Session() as session:
        race = Race(KINDS[kind], session, KINDS[kind].least)
        takers = [
            start(lambda i=i: race.consume(random.Random(i), hurried=i / 2)) for i in range(3)
        ]
        givers = [start(lambda i=i: race.produce(i, 10, random.Random(-i))) for i in range(3)]
        for join in givers:
            assert join() is None
        session.run(race.closes[False])
        for join in takers:
            assert join() is None
        check(race, complete=False)


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_ends_with_its_session(kind: str) -> None:
    session = tf.Session()
    race = Race(KINDS[kind], session, KINDS[kind].least)
    ended = (*ENDS, RuntimeError)

    def until_closed(work: Callable[[], None]) -> str:
        try:
            while True:
                work()
        except ended:
            return "ended"

    dice = [random.Random(i) for i in range(4)]
    works = [
        start(lambda: until_closed(lambda: session.run(race.enqueue, {race.number: 1}))),
        start(
            lambda: until_closed(lambda: session.run(race.enqueue_many, {race.numbers: [2] * 9}))
        ),
        *[start(lambda take=t: until_closed(lambda: session.run(take))) for t in race.takes],
    ]
    race.consume(dice[0], most=4)
    session.close()
    assert [join() for join in works] == ["ended"] * len(works)
