#!/usr/bin/env bash
# Proves the CPU backend as machines differ: with oneDNN, generated code or both absent, with
# generated code from the first step on, with the instructions of older processors (oneDNN, OpenBLAS
# and generated code each have a switch that leaves newer ones out), and on one, two and four threads.
#
# `usual` is the whole conformance suite, and all tests of what TensorFlow computed, where that data
# is at hand. What a variant changes are kernels, so it runs the levels that prove kernels, and the
# replay: gradients are made of the same ops (half of the suite's time), and the runtime's level
# does not ask how a kernel computes.
#
#   tools/prove_cpu.sh [VARIANT ...]     all of them without a name
set -uo pipefail
cd "$(dirname "$0")/.."

declare -A variants=(
  [usual]=""
  [without-onednn]="OPDOCK_ONEDNN=off"
  [without-generated-code]="OPDOCK_JIT=off"
  [numpy-alone]="OPDOCK_ONEDNN=off OPDOCK_JIT=off"
  [compiled-at-once]="OPDOCK_JIT=sync"
  [avx2]="ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell OPDOCK_JIT_CPU=x86-64-v3"
  [sse41]="ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Nehalem OPDOCK_JIT_CPU=x86-64-v2"
  [one-thread]="OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1"
  [two-threads]="OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2"
  [four-threads]="OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4"
)
order=(usual without-onednn without-generated-code numpy-alone compiled-at-once avx2 sse41 one-thread
       two-threads four-threads)
kernels=(--level L0 --level L1 --level L2 --level L4 --level L5)
failed=0
for name in "${@:-${order[@]}}"; do
  [ -v "variants[$name]" ] || { echo "no variant '$name'; there are: ${order[*]}" >&2; exit 2; }
  read -ra settings <<<"${variants[$name]}"
  levels=("${kernels[@]}") replay=tests/oracle/test_replay.py
  [ "$name" = usual ] && levels=() replay=tests/oracle
  echo "== $name: ${variants[$name]:-nothing set}"
  env "${settings[@]}" .venv/bin/opdock conformance --device cpu:0 "${levels[@]}" | tail -n 2 || failed=1
  env "${settings[@]}" .venv/bin/python -m pytest -q "$replay" -n "${WORKERS:-2}" | tail -n 1 \
    || failed=1
done
exit $failed
