#!/usr/bin/env bash
# Makes .venv with every member of the workspace editable. `make setup` calls it; OPDOCK_PYTHON names
# another interpreter than the first of python3.11 .. python3.13, python3 that fits; OPDOCK_CONSTRAINTS
# another file than constraints.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

choose_python() {
  local candidate
  for candidate in ${OPDOCK_PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if command -v "$candidate" >/dev/null && fits "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  echo "opdock needs Python 3.11, 3.12 or 3.13 (or name one: OPDOCK_PYTHON=/path make setup)" >&2
  return 1
}

constraints=${OPDOCK_CONSTRAINTS:-constraints.txt}
python=$(choose_python)
if ! fits .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  rm -rf .venv
  # Debian splits venv's pip off into a package of its own; as root it can simply be had.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package"
    else
      echo "this Python cannot make virtual environments: install $package (apt install $package)" >&2
      exit 1
    fi
  fi
  "$python" -m venv .venv
fi

pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
# An old pip knows no dependency groups.
"${pip[@]}" install -c "$constraints" "pip>=25.1" hatchling editables
members=(-e . -e "core[testing]")
for folder in backends/* plugins/*; do
  # PyTorch and JAX are large: `make torch` and `make jax` install them and what stands on them.
  case "$folder" in plugins/torch | plugins/jax) continue ;; esac
  [ -f "$folder/pyproject.toml" ] && members+=(-e "$folder")
done
# The build backend is already here, so an editable install need not fetch it once a member.
"${pip[@]}" install -c "$constraints" --no-build-isolation "${members[@]}" --group dev --group demo
