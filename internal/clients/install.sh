#!/usr/bin/env bash
# Installs the clients and the conformance suite into a folder:
#   install.sh FOLDER
# Needs npm and python3. Does nothing where the folder holds them already.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

wanted=$(cd "$here" && cat package.json package-lock.json requirements.txt install.sh | sha256sum)
if [ "$(cat installed 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
rm -rf installed node_modules venv
cp "$here/package.json" "$here/package-lock.json" .
# Not npm ci: it refuses a lock file without the optional packages of other systems.
npm install --ignore-scripts --no-audit --no-fund --loglevel=error
cmp package-lock.json "$here/package-lock.json"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
printf '%s\n' "$wanted" >installed
