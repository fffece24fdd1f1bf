"""What ops and copies take, by device: curves through what traces have shown."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from scipy.optimize import nnls

__all__ = ["CostModel", "Work"]

VERSION: Final = 1
_MOST: Final = 64 << 20  # bytes of a file: a model of every op on ten devices is a hundredth of it
_ENOUGH: Final = 3  # samples of different work that make a curve of their own


@dataclass(frozen=True)
class Work:
    """What a node does, as far as shapes tell.

    Attributes:
        bytes: what it reads and writes.
        products: the square root of the product of the numbers of elements of its two largest
            inputs and of its output: exactly a matrix product's multiplications, and in proportion
            to a convolution's with filters of one size.
    """

    bytes: float
    products: float = 0.0

    @property
    def row(self) -> tuple[float, float, float]:
        """The terms of a curve: a constant, bytes, products."""
        return 1.0, self.bytes, self.products


Sample = tuple[Work, float]  # and seconds
Curve = tuple[float, float, float]  # seconds, a byte, a product


@dataclass
class CostModel:
    """Seconds of ops on devices and of copies between them.

    Attributes:
        ops: samples by device ("GPU:0") and op type.
        copies: samples by device and direction, "upload" or "download".
        free: op types that take no time of their own: constants, variables, feeds.
        preferred: the device on which core puts what nothing binds.
    """

    ops: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    copies: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    preferred: str = "CPU:0"
    _curves: dict[tuple[str, str], Curve] = field(default_factory=dict, init=False, repr=False)

    # ---------------------------------------------------------------- learning
    def add(self, device: str, op: str, work: Work, seconds: float) -> None:
        """Learns what a node took."""
        self.ops.setdefault(device, {}).setdefault(op, []).append((work, seconds))
        self._curves.clear()

    def add_copy(self, device: str, direction: str, work: Work, seconds: float) -> None:
        """Learns what a copy between the host and a device took."""
        self.copies.setdefault(device, {}).setdefault(direction, []).append((work, seconds))
        self._curves.clear()

    # ---------------------------------------------------------------- asking
    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of which anything is known, the preferred one first."""
        return tuple(sorted(self.ops, key=lambda d: (d != self.preferred, d)))

    def seconds(self, device: str, op: str, work: Work) -> float:
        """What a node would take; infinity if the device has not run its op and others have.

        An op that nobody has run takes what the device takes for such work on the average.
        """
        if op in self.free:
            return 0.0
        if op in self.ops.get(device, {}):
            return float(np.dot(self._curve(device, op), work.row))
        if any(op in known for known in self.ops.values()):
            return math.inf
        return float(np.dot(self._curve(device, ""), work.row))

    def copy_seconds(self, source: str, target: str, work: Work) -> float:
        """What a copy would take, through the host where neither end is one."""
        if source == target:
            return 0.0
        legs = [(target, "upload")] * (not _on_host(target))
        legs += [(source, "download")] * (not _on_host(source))
        return sum(float(np.dot(self._curve(d, way), work.row)) for d, way in legs)

    def _curve(self, device: str, what: str) -> Curve:
        """That of an op or a direction of copies on a device; of all its ops for ""."""
        if (device, what) not in self._curves:
            self._curves[device, what] = self._fitted(device, what)
        return self._curves[device, what]

    def _fitted(self, device: str, what: str) -> Curve:
        ops = self.ops.get(device, {})
        if what in ("upload", "download"):
            return fit(self.copies.get(device, {}).get(what, ()))
        if not what:
            return fit(sample for samples in ops.values() for sample in samples)
        samples = ops[what]
        if len({work for work, _ in samples}) >= _ENOUGH:
            return fit(samples)
        # Too few for a curve of its own: the device's, as much steeper as these say.
        common = self._curve(device, "")
        ratios = [s / max(float(np.dot(common, w.row)), 1e-12) for w, s in samples]
        factor = math.exp(float(np.mean(np.log(np.maximum(ratios, 1e-6)))))
        return common[0] * factor, common[1] * factor, common[2] * factor

    # ---------------------------------------------------------------- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model; an older file is replaced when all of it is on the disk."""
        data = {
            "version": VERSION, "preferred": self.preferred, "free": sorted(self.free),
            "ops": _plain(self.ops), "copies": _plain(self.copies),
        }  # fmt: skip
        _write(Path(path), json.dumps(data, separators=(",", ":")))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a model.

        Raises:
            FileNotFoundError: there is none.
            ValueError: the file is none; the message names the place.
        """
        file = Path(path)
        if file.stat().st_size > _MOST:
            raise ValueError(f"{file}: {file.stat().st_size} bytes are more than a cost model has")
        try:
            data = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as e:
            raise ValueError(f"{file} is no cost model: {e}") from None
        return cls(**_Reading(str(file)).model(data))


@dataclass
class _Reading:
    """Checks what a file holds, as it comes from anywhere."""

    file: str

    def model(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise self._wrong("version", f"want {VERSION}")
        preferred, free = data.get("preferred"), data.get("free")
        if not isinstance(preferred, str):
            raise self._wrong("preferred", "want the name of a device")
        if not isinstance(free, list) or not all(isinstance(op, str) for op in free):
            raise self._wrong("free", "want a list of op types")
        return {
            "preferred": preferred, "free": set(free),
            "ops": self._table(data, "ops"), "copies": self._table(data, "copies"),
        }  # fmt: skip

    def _table(self, data: dict[str, Any], key: str) -> dict[str, dict[str, list[Sample]]]:
        table = data.get(key)
        if not isinstance(table, dict) or not all(isinstance(t, dict) for t in table.values()):
            raise self._wrong(key, "want samples by device and name")
        return {
            device: {
                name: self._samples(rows, f"{key}.{device}.{name}") for name, rows in t.items()
            }
            for device, t in table.items()
        }

    def _samples(self, rows: Any, where: str) -> list[Sample]:
        if not isinstance(rows, list):
            raise self._wrong(where, "want a list of samples")
        found = []
        for row in rows:
            numbers = isinstance(row, list) and all(type(n) in (int, float) for n in row)
            if not numbers or len(row) != 3 or not all(0 <= n < 1e300 for n in row):
                raise self._wrong(where, "want bytes, products and seconds of each sample")
            found.append((Work(row[0], row[1]), float(row[2])))
        return found

    def _wrong(self, where: str, want: str) -> ValueError:
        return ValueError(f"{self.file} is no cost model: {where}: {want}")


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _plain(table: Mapping[str, Mapping[str, list[Sample]]]) -> dict[str, Any]:
    return {
        device: {name: [[w.bytes, w.products, s] for w, s in known] for name, known in by.items()}
        for device, by in table.items()
    }


def fit(samples: Iterable[Sample]) -> Curve:
    """Non-negative least squares of the relative errors; zeros without samples."""
    known = [(work.row, seconds) for work, seconds in samples if seconds > 0]
    if not known:
        return 0.0, 0.0, 0.0
    # Divided by the seconds, so that a microsecond's error counts more where there are few.
    rows = np.array([[term / seconds for term in row] for row, seconds in known])
    scale = np.maximum(rows.max(axis=0), 1e-300)
    found, _ = nnls(rows / scale, np.ones(len(known)))
    constant, a_byte, a_product = (found / scale).tolist()
    return constant, a_byte, a_product


def _on_host(device: str) -> bool:
    return device.startswith("CPU:")
