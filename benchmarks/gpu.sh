#!/usr/bin/env bash
# Proves and measures opdock on a machine with an NVIDIA GPU, and writes one Markdown report.
#
#     benchmarks/gpu.sh [--dry-run] [--report FILE] [--python PYTHON]
#
# It needs the driver and a Python; the rest is set up in .venv. A step that fails is told in the
# report and does not stop the others; the exit status is 1 then. --dry-run prints the commands.
# OPDOCK_REPLAY names a replay script for recorded TensorFlow results; PyTorch and CuPy's own
# products are measured beside opdock's where they are installed.
set -euo pipefail
cd "$(dirname "$0")/.."

dry=0
report=gpu-report.md
python=.venv/bin/python
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry=1 ;;
    --report) report=${2:?--report needs a file}; shift ;;
    --python) python=${2:?--python needs an interpreter}; shift ;;
    *) echo "unknown argument: $1 (--dry-run, --report FILE, --python PYTHON)" >&2; exit 2 ;;
  esac
  shift
done

failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The newest CUDA that the driver serves, by its major number.
cuda_major() {
  if [ "$dry" = 1 ]; then echo 12; return; fi
  nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' | head -n 1
}

write() { if [ "$dry" = 1 ]; then printf '# report: %s\n' "$*"; else printf '%s\n' "$*" >>"$report"; fi; }

# step TITLE COMMAND...: runs a command; its last lines, its time and its status go into the report.
step() {
  local title=$1 began status=0
  shift
  if [ "$dry" = 1 ]; then printf '%s\n' "$*"; return; fi
  echo "== $title" >&2
  began=$SECONDS
  "$@" >"$work/out" 2>&1 || status=$?
  [ "$status" = 0 ] || failed=1
  {
    printf '\n## %s\n\n`%s`: ' "$title" "$*"
    if [ "$status" = 0 ]; then printf 'ok'; else printf '**failed with status %s**' "$status"; fi
    printf ' after %s s\n\n```\n' "$((SECONDS - began))"
    tail -n "${lines:-40}" "$work/out"
    printf '```\n'
  } >>"$report"
}

if [ "$dry" = 0 ] && ! command -v nvidia-smi >/dev/null; then
  echo "there is no NVIDIA driver here (nvidia-smi is not found)" >&2
  exit 1
fi

[ "$dry" = 1 ] || : >"$report"
write "# opdock on a GPU"
if [ "$dry" = 0 ]; then
  write "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)" \
    "· $(uname -sm) · $(date -u +%F) · $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')"
fi

if [ "$python" = .venv/bin/python ]; then step "Set-up" ./tools/make_venv.sh; fi
cuda=$(cuda_major)
step "CuPy and cuDNN" "$python" -m pip install --quiet "./backends/cuda[cuda$cuda,cudnn]" \
  "nvidia-cudnn-cu$cuda"
step "Devices" "$python" -m opdock.cli.main doctor
lines=60 step "Conformance" "$python" -m opdock.cli.main conformance --device cuda:0 \
  --json "${report%.md}-conformance.json" --markdown "${report%.md}-conformance.md"
if [ -n "${OPDOCK_REPLAY:-}" ]; then
  step "Replay of recorded results" "$python" "$OPDOCK_REPLAY" --module opdock --device /device:CUDA:0
fi
for program in tests/programs/seeds/*.py; do
  lines=3 step "Seed program $(basename "$program" .py)" "$python" "$program"
done
lines=150 step "Workloads and scaling curves" "$python" benchmarks/run.py --device cuda:0 --full \
  --json "${report%.md}-workloads.json" --markdown "${report%.md}-workloads.md"
step "Products, convolutions and training" "$python" benchmarks/gpu.py --device /device:CUDA:0

[ "$dry" = 1 ] || echo "report: $report" >&2
exit "$failed"
