"""The assignment that the placer finds costs no more than any other."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from opdock_placer.cut import Problem, best, worthwhile

seconds = st.integers(0, 100).map(float)


@st.composite
def problems(draw: st.DrawFn, devices: int) -> Problem:
    count = draw(st.integers(1, 7))
    nodes = []
    for _ in range(count):
        of = draw(st.lists(seconds, min_size=devices, max_size=devices))
        barred = draw(st.sets(st.integers(0, devices - 1), max_size=devices - 1))
        nodes.append([math.inf if d in barred else s for d, s in enumerate(of)])
    edges = {}
    for a, b in itertools.combinations(range(count), 2):
        if draw(st.booleans()):
            up, down = draw(seconds), draw(seconds)  # through the host, which is device 0
            leg = [0.0] + [up] * (devices - 1), [0.0] + [down] * (devices - 1)
            edges[a, b] = [
                [0.0 if i == j else leg[1][i] + leg[0][j] for j in range(devices)]
                for i in range(devices)
            ]
    return Problem(nodes, edges)


def exhausted(problem: Problem) -> float:
    devices = range(len(problem.seconds[0]))
    return min(problem.cost(c) for c in itertools.product(devices, repeat=len(problem.seconds)))


@settings(max_examples=150, deadline=None)
@given(problems(2))
def test_two_devices_exactly(problem: Problem) -> None:
    # Capacities are whole numbers of 2**-28 of the sum.
    assert math.isclose(problem.cost(best(problem)), exhausted(problem), abs_tol=1e-3)


@settings(max_examples=75, deadline=None)
@given(problems(3))
def test_three_devices_so_that_no_move_gains(problem: Problem) -> None:
    found = best(problem)
    least = problem.cost(found)
    assert least < math.inf
    for device, moved in itertools.product(range(3), itertools.product((0, 1), repeat=len(found))):
        other = [device if m else stays for m, stays in zip(moved, found, strict=True)]
        assert problem.cost(other) >= least - 1e-3


def test_a_chain_moves_together_or_not_at_all() -> None:
    """No node alone is worth its copies; all of them are."""
    chain = [[5.0, 4.0]] * 10
    ends = [[0.0, math.inf]]  # fed and fetched on the host
    link = [[0.0, 3.0], [3.0, 0.0]]
    edges = {(i, i + 1): link for i in range(11)}
    assert best(Problem([*ends, *chain, *ends], edges)) == [0] + [1] * 10 + [0]
    assert best(Problem([*ends, *chain[:5], *ends], dict(list(edges.items())[:6]))) == [0] * 7


def test_nothing_to_decide() -> None:
    assert best(Problem([], {})) == []
    assert best(Problem([[math.inf, 3.0]], {})) == [1]


def test_mixing_must_gain_more_than_the_margin() -> None:
    """Two nodes, the first of which is faster on the second device, and a copy between them."""
    for copy, chosen in ((1.0, [1, 0]), (1.2, [1, 0]), (1.4, [0, 0]), (2.0, [0, 0])):
        problem = Problem([[5.0, 1.0], [2.0, 9.0]], {(0, 1): [[0.0, 0.0], [2 + copy, 0.0]]})
        # Placed apart they take 1 + 2 + 2 + copy, on one device 7: a tenth less is 6.3.
        assert worthwhile(problem, 0.1) == chosen
        assert problem.cost(best(problem)) == min(5 + copy, 7)


@settings(max_examples=150, deadline=None)
@given(problems(2), st.floats(0, 0.5))
def test_what_is_worthwhile_is_near_the_best(problem: Problem, margin: float) -> None:
    found = problem.cost(worthwhile(problem, margin))
    assert (1 - margin) * found <= problem.cost(best(problem)) + 1e-9
