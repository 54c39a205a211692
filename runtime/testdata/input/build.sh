#!/usr/bin/env bash
# Makes input.wasm and input-left.wasm, which tests use. Needs clang-19 with
# wasi-libc, and wasm-opt.
set -euo pipefail
cd "$(dirname "$0")"
clang-19 --target=wasm32-wasi -Oz -s -Wl,-z,stack-size=2097152 -Wl,--stack-first -o input.wasm input.c
wasm-opt --enable-sign-ext --enable-mutable-globals --enable-bulk-memory --enable-nontrapping-float-to-int \
  --enable-simd --enable-multivalue --enable-reference-types \
  --asyncify --pass-arg=asyncify-imports@wasi_snapshot_preview1.fd_read -O1 - -o input-left.wasm <input.wasm
