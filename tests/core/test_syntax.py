"""Syntax trees are read by several threads at once."""

from __future__ import annotations

import ast
import threading

import pytest

from opdock import syntax


def test_threads_read_trees_at_once() -> None:
    text = "\n".join(f"x{i} = (a + {i}) * [f(y) for y in (1, 2, (3, {i}))]" for i in range(40))
    want, wrong = ast.dump(ast.parse(text)), []

    def read() -> None:
        for _ in range(20):
            try:
                if ast.dump(syntax.tree_of(text)) != want:
                    wrong.append("another tree")
            except SystemError as e:
                wrong.append(str(e))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_others_disturb_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, left = ast.parse, [3]

    def disturbed(*args: object, **options: object) -> object:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=72, after=34)")
        return parse(*args, **options)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert isinstance(syntax.expression_of("a + 1"), ast.BinOp)
    left[0] = 100
    with pytest.raises(SystemError):
        syntax.tree_of("a = 1")
