"""`opdock launch`: who is started, with what, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opdock.cli.launch import command

# A server waits for ever, as `tf.train.Server.join` does.
SCRIPT = """
import json, os, sys, threading
task = json.loads(os.environ["TF_CONFIG"])
if task["task"]["type"] == "ps":
    threading.Event().wait()
print(json.dumps([task, sys.argv[1:]]))
sys.exit(int(sys.argv[1]) * task["task"]["index"])
"""


def launched(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    line = [sys.executable, "-m", "opdock.cli.main", "launch", "--ps", "1", "--workers", "2"]
    front = [a for a in arguments if a == "--flags"]
    rest = [a for a in arguments if a != "--flags"]
    return subprocess.run([*line, *front, str(script), *rest], capture_output=True, text=True)


def test_every_task_knows_which_it_is(tmp_path):
    run = launched(tmp_path, "0", "--flags", "--rate=2")
    assert run.returncode == 0, run.stderr
    lines = dict(line.split("] ", 1) for line in sorted(run.stdout.splitlines()))
    assert set(lines) == {"[worker 0", "[worker 1"}
    for index, (config, arguments) in enumerate(map(json.loads, lines.values())):
        assert config["task"] == {"type": "worker", "index": index}
        ps, workers = config["cluster"]["ps"], config["cluster"]["worker"]
        assert len({*ps, *workers}) == 3
        assert arguments == [
            "0", "--rate=2", "--job_name=worker", f"--task_index={index}",
            f"--ps_hosts={ps[0]}", f"--worker_hosts={','.join(workers)}",
        ]  # fmt: skip


def test_a_task_that_fails_ends_all(tmp_path):
    run = launched(tmp_path, "3")
    assert run.returncode == 3
    assert "worker 1 ended with 3" in run.stderr


@pytest.mark.parametrize("workers", ["0", "few"])
def test_what_is_no_cluster(workers):
    assert CliRunner().invoke(command, ["--workers", workers, "x.py"]).exit_code == 2
