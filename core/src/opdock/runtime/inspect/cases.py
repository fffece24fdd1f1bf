"""Replayable cases: a small graph with its inputs and the results it should give, in one file.

The file is NumPy's .npz without pickled objects: `case` is JSON, `graph` a serialized GraphDef,
and the arrays are the inputs and the expected results.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.io import protos
from opdock.io.array_files import Arrays
from opdock.io.tensor_proto import make_ndarray, make_tensor_proto
from opdock.runtime.session import Session

__all__ = ["Case", "device_scope", "difference", "load_case", "pack", "plain_config", "unpack"]

Array = npt.NDArray[Any]
_FORMAT: Final = "opdock case 1"


@dataclass
class Case:
    """A graph to run again.

    Attributes:
        graph_def: the graph, as a `GraphDef`.
        feeds: tensor name to array, for `init` as well as for `fetches`.
        fetches: names of the tensors to compare.
        expected: their values where the case comes from.
        init: names of operations to run first.
        state: names of tensors to fetch after the run, such as variables.
        expected_state: their values.
        rtol, atol: slack of the comparison; None for that of each element type.
        about: what is known of the case, in words: "op", "line", "device", "error" ...
        optimize: whether the compiler's passes take part.
    """

    graph_def: Any
    feeds: dict[str, Array]
    fetches: list[str]
    expected: list[Array]
    init: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    expected_state: list[Array] = field(default_factory=list)
    rtol: float | None = None
    atol: float | None = None
    about: dict[str, str] = field(default_factory=dict)
    optimize: bool = False

    # ------------------------------------------------------------ running
    def run(self, device: str, soft: bool = True) -> list[Array]:
        """The values of `fetches` and `state` on a device.

        Args:
            device: "cpu:0", "/device:CPU:0" or a full name.
            soft: whether ops that the device cannot run may run elsewhere.

        Raises:
            OpError: an op failed.
        """
        graph = Graph()
        graph_def = protos.GraphDef()
        graph_def.CopyFrom(self.graph_def)
        for node in graph_def.node:
            node.device = device_scope(device)
        with graph.as_default():
            import_graph_def(graph_def, name="")
        with Session(graph=graph, config=self._config(soft)) as session:
            named = {graph.get_tensor_by_name(n): v for n, v in self.feeds.items()}
            if self.init:
                session.run([graph.get_operation_by_name(n) for n in self.init], named)
            targets = [graph.get_operation_by_name(n) for n in self._targets()]
            values = session.run([list(self.fetches), targets], named)[0]
            state = session.run(list(self.state), named) if self.state else []
        return [np.asarray(v) for v in (*values, *state)]

    def _config(self, soft: bool) -> Any:
        from opdock import ConfigProto

        return ConfigProto(allow_soft_placement=soft) if self.optimize else plain_config(soft)

    def _targets(self) -> list[str]:
        """The op itself when it has nothing to fetch."""
        name = self.about.get("op", "")
        return [name] if not self.fetches and name else []

    def difference(self, values: Sequence[Any]) -> str:
        """What differs between `values` and what is expected; empty when nothing does."""
        names = [*self.fetches, *self.state]
        wanted = [*self.expected, *self.expected_state]
        found = (
            difference(v, w, n, self.rtol, self.atol)
            for n, v, w in zip(names, values, wanted, strict=True)
        )
        return next((text for text in found if text), "")

    # ------------------------------------------------------------ files
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the case; the file appears complete or not at all."""
        target = Path(path)
        arrays: dict[str, Array] = {}
        data = {
            "format": _FORMAT,
            "feeds": {
                n: pack(arrays, f"feed_{i}", v) for i, (n, v) in enumerate(self.feeds.items())
            },
            "fetches": self.fetches,
            "expected": [pack(arrays, f"expected_{i}", v) for i, v in enumerate(self.expected)],
            "init": self.init,
            "state": self.state,
            "expected_state": [
                pack(arrays, f"state_{i}", v) for i, v in enumerate(self.expected_state)
            ],
            "rtol": self.rtol, "atol": self.atol, "about": self.about,
            "optimize": self.optimize,
        }  # fmt: skip
        arrays["case"] = _bytes(json.dumps(data).encode())
        arrays["graph"] = _bytes(self.graph_def.SerializeToString(deterministic=True))
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(buffer.getvalue())
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        return target


def load_case(path: str | os.PathLike[str]) -> Case:
    """Reads a case that `Case.save` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no case.
    """
    from google.protobuf.message import DecodeError

    try:
        with Arrays(path) as arrays:
            data = json.loads(arrays["case"].tobytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']!r}")
            for names, values in (("fetches", "expected"), ("state", "expected_state")):
                if len(data[names]) != len(data[values]):
                    raise ValueError(f"{len(data[values])} values of {len(data[names])} {names}")
            return Case(
                protos.GraphDef.FromString(arrays["graph"].tobytes()),
                {str(name): unpack(arrays, packed) for name, packed in data["feeds"].items()},
                [*map(str, data["fetches"])],
                [unpack(arrays, packed) for packed in data["expected"]],
                [*map(str, data["init"])], [*map(str, data["state"])],
                [unpack(arrays, packed) for packed in data["expected_state"]],
                _slack(data["rtol"]), _slack(data["atol"]),
                {str(k): str(v) for k, v in data["about"].items()}, bool(data["optimize"]),
            )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError) as e:
        raise ValueError(f"{path} is no replayable case: {type(e).__name__}: {e}") from e


def _slack(value: Any) -> float | None:
    return None if value is None else float(value)


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def pack(arrays: dict[str, Array], key: str, value: Any) -> dict[str, Any]:
    """Puts an array among `arrays` in a form that needs no pickle, and says how to read it."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        arrays[key] = _bytes(make_tensor_proto(array, dtypes.string).SerializeToString())
        return {"key": key, "as": "TensorProto"}
    if array.dtype.isbuiltin != 1:
        arrays[key] = array.reshape(-1).view(np.uint8)
        return {"key": key, "as": array.dtype.name, "shape": list(array.shape)}
    arrays[key] = array
    return {"key": key}


def unpack(arrays: Mapping[str, Array], packed: dict[str, Any]) -> Array:
    """The array that `pack` has put among others.

    Raises:
        KeyError, TypeError, ValueError, DecodeError: there is none that `pack` could have put.
    """
    array, kind = arrays[packed["key"]], packed.get("as")
    if kind is None:
        if dtypes.as_dtype(array.dtype).np != array.dtype:
            raise TypeError(f"no tensor has elements of the type {array.dtype}")
        return array
    if kind == "TensorProto":
        return make_ndarray(protos.TensorProto.FromString(array.tobytes()))
    return array.view(dtypes.as_dtype(kind).np).reshape(packed["shape"])


# ---------------------------------------------------------------- shared
def device_scope(name: str) -> str:
    """The scope of "cpu:0", "/device:CPU:0"; names that begin with a slash are left alone.

    Raises:
        ValueError: the text is no device name.
    """
    if name.startswith("/"):
        return name
    kind, _, index = name.removeprefix("device:").partition(":")
    if not kind.isidentifier() or not index.isdigit():
        raise ValueError(f"{name!r} is no device name; write type:number, for instance cpu:0")
    return f"/device:{kind.upper()}:{index}"


def plain_config(soft: bool) -> Any:
    """A ConfigProto under which no compiler pass spares or merges an op."""
    from opdock import ConfigProto

    config = ConfigProto(allow_soft_placement=soft)
    config.graph_options.optimizer_options.opt_level = -1
    return config


def difference(
    got: Any, wanted: Any, name: str, rtol: float | None = None, atol: float | None = None
) -> str:
    """What differs beyond the tolerance of the element type, or the given one; else empty."""
    from opdock.testing.harness.tolerances import Tolerance, compare, tolerance_for

    expected = np.asarray(wanted)
    base = tolerance_for(expected.dtype)
    slack = Tolerance(base.rtol if rtol is None else rtol, base.atol if atol is None else atol)
    mismatch = compare(np.asarray(got), expected, slack, name)
    return "" if mismatch is None else mismatch.text
