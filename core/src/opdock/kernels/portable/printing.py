"""Portable kernels of printing, on values in host memory, the same beside every device."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.summarize import summarize, summarize_edges


@portable("Print", host_inputs=("data",), may_alias={0: 0}, keeps=())
def print_data(xp: Any, sig: NodeSig) -> Any:
    """Writes the data to standard error and passes the input on."""
    message, limit = sig.attrs["message"], sig.attrs["summarize"]
    first_n, lock, calls = sig.attrs["first_n"], threading.RLock(), [0]

    def run(value: Any, *data: Any) -> Any:
        with lock:
            calls[0] += 1
            seen = calls[0]
        if first_n < 0 or seen <= first_n:
            text = "".join(f"[{summarize(d, limit)}]" for d in data)
            print(f"{message}{text}", file=sys.stderr, flush=True)
        return value

    return run


@portable("PrintV2", host_inputs=("input",), keeps=())
def print_text(xp: Any, sig: NodeSig) -> Any:
    """Writes a string to a stream or the end of a file."""
    where, end = sig.attrs["output_stream"], sig.attrs["end"]

    def run(value: Any) -> None:
        text = np.asarray(value, object).reshape(-1)[0]
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if where.startswith("file://"):
            with open(where[len("file://") :], "a", encoding="utf-8") as file:
                file.write(text + end)
            return
        stream = sys.stdout if where == "stdout" else sys.stderr
        if where.startswith("log("):
            # As TF's log has it: the level's letter first.
            text = f"{where[4].upper()} tensorflow] {text}"
        print(text, end=end, file=stream, flush=True)

    return run


@portable("StringFormat", host_inputs=("inputs",), host_outputs=("output",))
def string_format(xp: Any, sig: NodeSig) -> Any:
    """The template with its placeholders replaced by the inputs."""
    pieces = sig.attrs["template"].split(sig.attrs["placeholder"])
    edge = sig.attrs["summarize"]

    def run(*inputs: Any) -> Any:
        text = pieces[0]
        for value, piece in zip(inputs, pieces[1:], strict=True):
            text += summarize_edges(value, edge) + piece
        out = np.empty((), object)
        out[()] = text.encode()
        return out

    return run
