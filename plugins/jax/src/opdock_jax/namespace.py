"""The array API over JAX as core's portable kernels need it: `jax.numpy` and a few corrections."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from opdock.plugin import tracing

_FOLDS = {jnp.multiply: "prod", jnp.maximum: "max", jnp.minimum: "min"}


def is_traced(array: Any) -> bool:
    """Whether an array has no values, because a function is being traced."""
    return isinstance(array, jax.core.Tracer)


class Linalg:
    """`jax.numpy.linalg`, which gives NaN or infinity where other libraries raise."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp.linalg, name)

    def cholesky(self, x: jax.Array) -> jax.Array:
        """The lower factor."""
        lower = jnp.linalg.cholesky(x)
        self._refuse(jnp.any(jnp.isnan(lower)))
        return lower

    def inv(self, x: jax.Array) -> jax.Array:
        """The inverse."""
        return self.solve(x, jnp.eye(x.shape[-1], dtype=x.dtype))

    def solve(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """The solutions of linear systems."""
        packed, _, order = lax.linalg.lu(a)
        self._refuse(jnp.any(jnp.diagonal(packed, axis1=-2, axis2=-1) == 0))
        b = jnp.broadcast_to(b, (*a.shape[:-2], *b.shape[-2:]))
        b = jnp.take_along_axis(b, order[..., None], axis=-2)
        y = lax.linalg.triangular_solve(packed, b, left_side=True, lower=True, unit_diagonal=True)
        return lax.linalg.triangular_solve(packed, y, left_side=True, lower=False)

    def _refuse(self, wrong: jax.Array) -> None:
        if tracing.defer(jnp, wrong) if is_traced(wrong) else bool(wrong):
            raise np.linalg.LinAlgError


class Namespace:
    """`jax.numpy`, with what core asks of a namespace beyond the standard."""

    linalg = Linalg()

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)

    def asarray(self, obj: Any, dtype: Any = None, **options: Any) -> Any:
        """An array. Numbers become one in NumPy: JAX would compile a conversion for each type."""
        plain = dtype is not None and isinstance(obj, bool | int | float | complex | list)
        return jnp.asarray(np.asarray(obj, dtype) if plain else obj, dtype, **options)

    is_traced = staticmethod(is_traced)
    while_loop = staticmethod(lax.while_loop)
    opaque = staticmethod(lax.optimization_barrier)

    def defer(self, condition: Any) -> bool:
        """Keeps a check for whoever traces."""
        return tracing.defer(jnp, condition)

    def part(self, array: Any, starts: Any, shape: Any) -> Any:
        """A block whose place may be traced."""
        return lax.dynamic_slice(array, _indices(starts), shape)

    def set_part(self, array: Any, starts: Any, part: Any) -> Any:
        """An array with another block."""
        return lax.dynamic_update_slice(array, part, _indices(starts))

    def bitcast(self, flat: jax.Array, dtype: Any) -> jax.Array:
        """The memory of a vector as elements of another type."""
        return flat.view(dtype)

    def top_k(self, x: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
        """The largest of each row; XLA by itself puts 0 above -0, and NaN by its sign."""
        floats = jnp.issubdtype(x.dtype, jnp.floating)
        order = jnp.where(x == 0, 0, jnp.where(jnp.isnan(x), jnp.nan, x)) if floats else x
        places = lax.top_k(order, k)[1]
        return jnp.take_along_axis(x, places, -1, mode="promise_in_bounds"), places

    def fold_rows(self, combine: Any, rows: Any, ids: Any, count: int) -> tuple[Any, Any]:
        """The rows of each id in one, and which ids there are; negative ones are left out."""
        ids = jnp.where(ids < 0, count, ids)
        if combine is jnp.add:
            start = jnp.zeros((count, rows.shape[1]), rows.dtype)
            return start.at[ids].add(rows, mode="drop"), None
        out = getattr(jax.ops, f"segment_{_FOLDS[combine]}")(rows, ids, count)
        return out, jnp.zeros(count, bool).at[ids].set(True, mode="drop")


def _indices(starts: Any) -> list[jax.Array]:
    """Numbers and arrays as arrays of one type, which XLA asks for."""
    return [jnp.asarray(i, dtype=jnp.int64) for i in starts]


namespace = Namespace()
