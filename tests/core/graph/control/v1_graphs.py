"""Writes GraphDefs with TF 1's first control flow, as its `tf.cond` and `tf.while_loop` did."""

from __future__ import annotations

from typing import Any

import numpy as np

import opdock as tf

FLOAT, INT, BOOL, FLOAT_REF = 1, 3, 10, 101


class Text:
    """A GraphDef from lines "name = Op(input, ...) [T]"."""

    def __init__(self) -> None:
        self.graph_def = tf.GraphDef()
        self.graph_def.versions.producer = tf.GRAPH_DEF_VERSION

    def node(self, name: str, op: str, *inputs: str, **attrs: Any) -> str:
        made = self.graph_def.node.add(name=name, op=op, input=list(inputs))
        for key, value in attrs.items():
            attr = made.attr[key]
            if key in ("T", "dtype", "DstT", "SrcT"):
                attr.type = value
            elif isinstance(value, bool):
                attr.b = value
            elif isinstance(value, int):
                attr.i = value
            elif isinstance(value, str):
                attr.s = value.encode()
            elif isinstance(value, tuple):
                for size in value:
                    attr.shape.dim.add(size=size)
            elif isinstance(value, list):
                attr.list.s.extend(v.encode() for v in value)
            else:
                attr.tensor.CopyFrom(tf.make_tensor_proto(value))
        return name

    def const(self, name: str, value: Any, *controls: str) -> str:
        array = np.asarray(value)
        kind = {"f": FLOAT, "i": INT, "b": BOOL}[array.dtype.kind]
        array = array.astype({FLOAT: np.float32, INT: np.int32, BOOL: np.bool_}[kind])
        return self.node(name, "Const", *controls, dtype=kind, value=array)

    def placeholder(self, name: str, dtype: int, shape: tuple[int, ...] = ()) -> str:
        return self.node(name, "Placeholder", dtype=dtype, shape=shape)

    def switches(self, scope: str, pred: str) -> None:
        """What every tf.cond begins with."""
        self.node(f"{scope}/Switch", "Switch", pred, pred, T=BOOL)
        self.node(f"{scope}/switch_t", "Identity", f"{scope}/Switch:1", T=BOOL)
        self.node(f"{scope}/switch_f", "Identity", f"{scope}/Switch", T=BOOL)
        self.node(f"{scope}/pred_id", "Identity", pred, T=BOOL)

    def run(self, fetch: str | list[str], feed: dict[str, Any] | None = None) -> Any:
        tf.import_graph_def(self.graph_def, name="")
        with tf.Session() as sess:
            return sess.run(fetch, feed)


def branch(g: Text, scope: str, pred: str, x: str, up: float, down: float) -> None:
    """cond(pred, x * up, x - down)"""
    g.switches(scope, pred)
    g.const(f"{scope}/mul/y", up, f"^{scope}/switch_t")
    g.node(f"{scope}/mul/Switch", "Switch", x, f"{scope}/pred_id", T=FLOAT, _class=[f"loc:@{x}"])
    g.node(f"{scope}/mul", "Mul", f"{scope}/mul/Switch:1", f"{scope}/mul/y", T=FLOAT)
    g.const(f"{scope}/sub/y", down, f"^{scope}/switch_f")
    g.node(f"{scope}/sub/Switch", "Switch", x, f"{scope}/pred_id", T=FLOAT, _class=[f"loc:@{x}"])
    g.node(f"{scope}/sub", "Sub", f"{scope}/sub/Switch", f"{scope}/sub/y", T=FLOAT)
    g.node(f"{scope}/Merge", "Merge", f"{scope}/sub", f"{scope}/mul", T=FLOAT, N=2)


class Loop:
    """while_loop under a scope: variables as (start, dtype), then body, then close."""

    def __init__(self, g: Text, scope: str, starts: list[tuple[str, int]]) -> None:
        self.g, self.scope, self.starts = g, scope, starts
        self.frame = f"{scope}/while_context"
        for i, (start, dtype) in enumerate(starts):
            self.enter(f"Enter_{i}", start, dtype, False)
            g.node(
                f"{scope}/Merge_{i}",
                "Merge",
                f"{scope}/Enter_{i}",
                f"{scope}/Next_{i}",
                T=dtype,
                N=2,
            )

    def enter(self, name: str, source: str, dtype: int, constant: bool = True) -> str:
        return self.g.node(
            f"{self.scope}/{name}", "Enter", source, T=dtype, frame_name=self.frame,
            is_constant=constant, parallel_iterations=7,
        )  # fmt: skip

    def cond(self, keep: str) -> None:
        self.g.node(f"{self.scope}/LoopCond", "LoopCond", keep)
        for i, (_, dtype) in enumerate(self.starts):
            scope = self.scope
            self.g.node(
                f"{scope}/Switch_{i}", "Switch", f"{scope}/Merge_{i}", f"{scope}/LoopCond",
                T=dtype, _class=[f"loc:@{scope}/Merge_{i}"],
            )  # fmt: skip
            self.g.node(f"{scope}/Identity_{i}", "Identity", f"{scope}/Switch_{i}:1", T=dtype)
            self.g.node(f"{scope}/Exit_{i}", "Exit", f"{scope}/Switch_{i}", T=dtype)

    def close(self, *following: str) -> None:
        for i, source in enumerate(following):
            self.g.node(f"{self.scope}/Next_{i}", "NextIteration", source, T=self.starts[i][1])


def count_to(g: Text, scope: str, limit: str, start: str, step: str) -> Loop:
    """i = 0, x = start; while i < limit: x = x * step; i += 1"""
    g.const(f"{scope}/Const", 0)
    loop = Loop(g, scope, [(f"{scope}/Const", INT), (start, FLOAT)])
    g.node(f"{scope}/Less", "Less", f"{scope}/Merge_0", loop.enter("Less/Enter", limit, INT), T=INT)
    loop.cond(f"{scope}/Less")
    g.const(f"{scope}/one", 1, f"^{scope}/Identity_0")
    g.node(f"{scope}/add", "Add", f"{scope}/Identity_0", f"{scope}/one", T=INT)
    g.node(
        f"{scope}/mul", "Mul", f"{scope}/Identity_1", loop.enter("mul/Enter", step, FLOAT), T=FLOAT
    )
    loop.close(f"{scope}/add", f"{scope}/mul")
    return loop
