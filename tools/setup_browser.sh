#!/usr/bin/env bash
# Gives this machine Chromium if it has none: TensorBoard's pages are drawn by it, for the pictures in
# the documentation and for tests that drive them. `make browser` and `make pictures` call it.
set -euo pipefail

if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
  exit
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  if { "${get[@]}" update && "${get[@]}" install -y --no-install-recommends chromium; } >/dev/null; then exit; fi
fi
echo "no browser: tests of TensorBoard's pages will fail (apt install chromium)" >&2
