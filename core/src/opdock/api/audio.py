"""`tf.audio`: WAV files."""

from __future__ import annotations

from opdock.ops.audio import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]
