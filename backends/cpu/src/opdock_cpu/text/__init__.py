"""What the kernels of strings share: hashes, regular expressions, Unicode, parsers of records."""
