"""opdock's workloads under a name of their own, so that interpreters without opdock have them.

They are `opdock.testing.workloads`, read from the checkout: `import opdock` would give the process
of another library two of them.
"""

from __future__ import annotations

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parent.parent / "core/src/opdock/testing/workloads")]
"""What makes this module a package, whose modules are the files there."""
