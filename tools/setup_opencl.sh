#!/usr/bin/env bash
# Gives this machine an OpenCL device if it has none that works: PoCL, which runs OpenCL on the
# processor. Debian's package comes first, because its compiler is newer than the wheel's and is
# built for any processor; the wheel needs no root. `make test` calls it. A machine on which
# neither works is told so: its tests of the OpenCL backend then skip with that reason.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python

works() { "$python" -c 'import sys; from opdock_opencl.probe import probe; sys.exit(not probe().devices)'; }

debian() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  { "${get[@]}" update && "${get[@]}" install -y --no-install-recommends pocl-opencl-icd; } >/dev/null
}

wheel() {
  "$python" -m pip --disable-pip-version-check --quiet install \
    -c "${OPDOCK_CONSTRAINTS:-constraints.txt}" pocl-binary-distribution
}

works && exit
for source in debian wheel; do
  "$source" || continue
  works && exit
done
"$python" -c 'from opdock_opencl.probe import probe; print("no OpenCL device:", probe().reason)' >&2
