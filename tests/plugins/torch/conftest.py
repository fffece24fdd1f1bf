"""`make torch` runs this folder; it needs PyTorch, which `make setup` does not install."""

from __future__ import annotations

import os

# Before any session: several devices on any machine.
os.environ.setdefault("OPDOCK_TORCH_CPUS", "2")
