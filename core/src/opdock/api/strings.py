"""`tf.strings`: ops on strings."""

from __future__ import annotations

from opdock.ops.encoding import as_string
from opdock.ops.encoding import string_to_number as to_number
from opdock.ops.hashing import string_to_hash_bucket as to_hash_bucket
from opdock.ops.hashing import string_to_hash_bucket_fast as to_hash_bucket_fast
from opdock.ops.hashing import string_to_hash_bucket_strong as to_hash_bucket_strong
from opdock.ops.ngrams import ngrams
from opdock.ops.printing import string_format as format
from opdock.ops.regex import regex_full_match, regex_replace
from opdock.ops.strings import (
    lower,
    reduce_join,
    split,
    substr,
    unsorted_segment_join,
    upper,
)
from opdock.ops.strings import string_bytes_split as bytes_split
from opdock.ops.strings import string_join as join
from opdock.ops.strings import string_length as length
from opdock.ops.strings import string_strip as strip
from opdock.ops.unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_script,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join",
    "regex_full_match", "regex_replace", "split", "strip", "substr", "to_hash_bucket",
    "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "unicode_decode",
    "unicode_decode_with_offsets", "unicode_encode", "unicode_script", "unicode_split",
    "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join", "upper",
]  # fmt: skip
