"""How many threads there are: limits, and what control groups say."""

from __future__ import annotations

from pathlib import Path

import pytest

from opdock_cpu import threads as module
from opdock_cpu.quota import quota
from opdock_cpu.threads import threads, use_threads


def tree(root: Path, group: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": group, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


FS = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("group", "files", "share"),
    [
        ("0::/a/b\n", {f"{FS}/a/b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {f"{FS}/a/b/cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {f"{FS}/a/b/cpu.max": "max 100000\n", f"{FS}/a/cpu.max": "5 10\n"}, 0.5),
        # A container's own group is mounted as the root.
        ("0::/not/mounted\n", {f"{FS}/cpu.max": "200000 100000\n"}, 2.0),
        (
            "3:memory:/m\n2:cpu,cpuacct:/c\n",
            {
                f"{FS}/cpu,cpuacct/c/cpu.cfs_quota_us": "300000\n",
                f"{FS}/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n",
                f"{FS}/memory/m/cpu.max": "1 100\n",
            },
            3.0,
        ),
        (
            "2:cpu:/c\n",
            {f"{FS}/cpu/c/cpu.cfs_quota_us": "-1\n", f"{FS}/cpu/c/cpu.cfs_period_us": "100000\n"},
            None,
        ),
        ("0::/a\n", {f"{FS}/a/cpu.max": "half of it\n"}, None),
        ("", {}, None),
    ],
)
def test_the_quota_of_control_groups(
    group: str, files: dict[str, str], share: float | None, tmp_path: Path
) -> None:
    assert quota(tree(tmp_path, group, files)) == share


def test_a_machine_without_control_groups(tmp_path: Path) -> None:
    assert quota(tmp_path) is None


@pytest.mark.parametrize(
    ("cores", "share", "asked", "limit", "count"),
    [
        (8, None, "", 0, 8), (8, 2.5, "", 0, 3), (2, 6.0, "", 0, 2), (8, 0.1, "", 0, 1),
        (8, None, "3", 0, 3), (8, None, "3,2", 5, 3), (8, 2.0, "", 5, 5), (2, None, "4", 0, 4),
    ],
)  # fmt: skip
def test_how_many_threads(
    cores: int, share: float | None, asked: str, limit: int, count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(module, "_quota", lambda: share)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    use_threads(limit)
    try:
        assert threads() == count
    finally:
        use_threads(0)
