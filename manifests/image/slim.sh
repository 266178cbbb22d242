#!/usr/bin/env bash
# Takes out of an installation what no program needs to run; 112 MB remain. Called by the Dockerfile with the folder of
# the virtual environment. Licences stay, and so do sources: a traceback shows their lines.
set -euo pipefail
home=$1
packages=$(echo "$home"/lib/python3*/site-packages)

# Tests that packages bring along, and what is built for these alone.
find "$packages" -type d -name tests -prune -exec rm -r {} +
find "$packages" -type f \( -name '*_test.py' -o -name '*_test.cpython-*.pyc' -o -name '*_tests.*.so' \) -delete
rm -f "$packages"/numpy/_core/_simd.*.so "$packages"/multidict/_testcapi.*.so

# What compilers and type checkers read.
find "$packages" -type f \( -name '*.py[ix]' -o -name '*.px[di]' -o -name '*.[cha]' \) -delete
rm -rf "$packages"/numpy/{f2py,distutils,_pyinstaller} "$home"/include

# Commands of other packages, and texts that one of them puts beside all packages.
find "$home"/bin -type f ! -name 'vc-*' ! -name 'volcano-py' -delete
find "$packages" -maxdepth 1 -type f \( -name '*.md' -o -name '*.toml' \) -delete

# The generated client of kubernetes_asyncio: importing its config imports all of it, and nothing here calls it. Its
# sources and docstrings are three quarters of its size.
client=$packages/kubernetes_asyncio/client
"$home"/bin/python -m compileall -q -b -o 2 "$client"/{api,models}
find "$client"/{api,models} \( -name '*.py' -o -name '__pycache__' \) -prune -exec rm -r {} +

# Debug symbols. The libraries of numpy have none.
find "$packages" -type f -name '*.so' ! -path '*/numpy*' -exec strip --strip-debug {} +
