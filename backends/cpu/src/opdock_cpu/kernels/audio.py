"""Kernels of audio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, host_ops

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


# ---------------------------------------------------------------- files
@table.binder("DecodeWav")
def decode_wav(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The samples of a file, in as many frames and channels as are wanted."""
    wanted_frames, wanted_channels = sig.attrs["desired_samples"], sig.attrs["desired_channels"]

    def run(contents: Array) -> tuple[Array, Array]:
        if np.ndim(contents):
            shape = checks.dims(contents.shape)
            raise checks.invalid(f"contents must be scalar, got shape {shape}")
        audio, rate = host_ops.decode_wav(np.asarray(contents, object)[()])
        frames, channels = audio.shape
        if wanted_channels >= 0:
            audio = audio[:, np.minimum(np.arange(wanted_channels), channels - 1)]
        if wanted_frames >= 0:
            silence = np.zeros((max(0, wanted_frames - frames), audio.shape[1]), np.float32)
            audio = np.concatenate([audio[:wanted_frames], silence])
        return audio, np.array(rate & 0xFFFFFFFF, np.uint32).view(np.int32)

    return run


@table.kernel("EncodeWav", host_inputs=("sample_rate",))
def encode_wav(ctx: Any, audio: Array, sample_rate: Array) -> Array:
    """A file of samples."""
    if audio.ndim != 2:
        raise checks.invalid(f"audio must be 2-dimensional{checks.dims(audio.shape)}")
    checks.check_sample_rate(sample_rate)
    out = np.empty((), object)
    out[()] = host_ops.encode_wav(audio, int(sample_rate))
    return out
