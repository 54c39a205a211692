#!/usr/bin/env bash
# Builds the modules of the C guests into the folder that is given, or where they
# lie. Needs Debian's clang-19, lld-19, wasi-libc and libclang-rt-19-dev-wasm32.
# The same versions make the same bytes, whether Binaryen is there or not: clang has its
# wasm-opt go over what it links with a level of optimization, so it links without one.
set -euo pipefail
cd "$(dirname "$0")"
into=${1:-.}

# build KIND MODULE OPTIMIZATION SOURCE...: KIND is command or reactor.
build() {
  local kind=$1 module=$into/$2 optimize=$3 source objects
  shift 3
  mkdir -p "$(dirname "$module")"
  objects=$(mktemp -d)
  for source in sdk/json.c sdk/answer.c "sdk/$kind.c" "$@"; do
    clang-19 --target=wasm32-wasi -std=gnu17 "$optimize" -fno-delete-null-pointer-checks -Wall -Wextra -Werror -Wno-unused-result -Wno-unused-command-line-argument -ffile-prefix-map="$PWD"=. \
      -c -o "$objects/$(basename "$source").o" "$source"
  done
  (cd "$objects" && clang-19 --target=wasm32-wasi -mexec-model="$kind" -Wl,--strip-all,--stack-first,-z,stack-size=65536 -o module json.c.o answer.c.o "$kind.c.o" \
    $(for source in "$@"; do printf '%s.o ' "$(basename "$source")"; done))
  mv "$objects/module" "$module"
  rm -r "$objects"
  chmod 644 "$module"
}

build reactor echo/echo.wasm -O2 echo/echo.c
build command echo-command/echo.wasm -O2 echo/echo.c
build reactor residue/residue.wasm -Os residue/*.c residue/globals.s
build command residue/residue-command.wasm -Os residue/*.c residue/globals.s
