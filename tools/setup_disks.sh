#!/usr/bin/env bash
# Gives this machine what makes a Btrfs if it has none: in a file, it is the disk with a quota of the
# tests of full disks. They skip without it. `make test` calls this.
set -euo pipefail

if command -v mkfs.btrfs >/dev/null && command -v btrfs >/dev/null; then exit; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  get=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  if { "${get[@]}" update && "${get[@]}" install -y --no-install-recommends btrfs-progs; } >/dev/null; then exit; fi
fi
echo "no btrfs: tests of a used-up quota will skip (apt install btrfs-progs)" >&2
