#!/usr/bin/env bash
# Build an environment where torchtext still runs, and prove there that its objects and files are
# taken and that the fast test suite passes on the oldest torch that is allowed.
#
#   scripts/torchtext_env.sh [FOLDER]      default: .venv-torchtext; about 5 GB and some minutes
#
# PYTHON names the interpreter, 3.11; by default that on the PATH.
# A FOLDER that is there already is used again.
set -euo pipefail
here=$(pwd)
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

folder=${1:-.venv-torchtext}
if [ $# -gt 0 ] && [ "${folder#/}" = "$folder" ]; then
    folder=$here/$folder
fi

suits() {
    "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null
}

if [ ! -x "$folder/bin/python" ]; then
    python=${PYTHON:-}
    if [ -z "$python" ]; then
        for candidate in python3.11 python3; do
            if suits "$candidate"; then
                python=$candidate
                break
            fi
        done
    fi
    if [ -z "$python" ] || ! suits "$python"; then
        echo "error: found no Python 3.11, the only one that superconext and torchtext 0.18 share; expected one on" \
            "the PATH or in PYTHON; install one and run this again" >&2
        exit 1
    fi
    "$python" -m venv "$folder"
    echo '*' >"$folder/.gitignore"
fi

# Not with constraints.txt: it pins the torch of today.
# Not with the extra `test` either: transformers needs torch 2.6.
"$folder/bin/python" -m pip install --quiet --editable '.[torchtext]' 'pytest>=8' 'hypothesis>=6.100' 'pytest-xdist>=3.5'

"$folder/bin/python" - <<'CHECK'
import warnings
from importlib import metadata

warnings.simplefilter("ignore")
import numpy
import torch
import torchtext  # an OSError here means that torch and torchtext do not belong together

assert torch.__version__.startswith("2.3."), torch.__version__
assert metadata.version("torchtext").startswith("0.18."), metadata.version("torchtext")
assert numpy.__version__.startswith("1."), numpy.__version__
print("torch", torch.__version__, "torchtext", torchtext.__version__, "numpy", numpy.__version__)
CHECK

echo "== torchtext's objects and files"
"$folder/bin/python" -m pytest -m torchtext tests/vectors -rs
echo "== the fast suite"
"$folder/bin/python" -m pytest
