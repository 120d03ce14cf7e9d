#!/usr/bin/env bash
# Builds windtunnel/base:local from Debian packages, for machines that cannot pull a public image,
# and writes its name to .env, which compose.yaml reads. Needs root, debootstrap and a Debian mirror
# (WINDTUNNEL_DEBIAN_MIRROR, else debootstrap's default).
set -euo pipefail
cd "$(dirname "$0")/.."

image=windtunnel/base:local
suite=trixie
packages=ca-certificates,iproute2,python3,python3-venv,tcpdump

say() { printf 'base-image: %s\n' "$*" >&2; }

use() {
  touch .env
  sed -i '/^WINDTUNNEL_BASE_IMAGE=/d' .env
  printf 'WINDTUNNEL_BASE_IMAGE=%s\n' "$image" >>.env
}

mkdir -p build
if docker image inspect "$image" >/dev/null 2>&1; then
  use
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  say "building the base image needs root; run: sudo make base-image"
  exit 1
fi
if ! command -v debootstrap >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    debootstrap debian-archive-keyring >build/apt.log 2>&1 \
    || {
      say "debootstrap is not installed; run: apt-get install debootstrap debian-archive-keyring"
      exit 1
    }
fi

# Not below build/, whose file system may not allow device nodes.
root=$(mktemp -d "${TMPDIR:-/var/tmp}/windtunnel-base.XXXXXX")
trap 'rm -rf "$root"' EXIT
say "building $image from Debian $suite packages (half a minute)"
debootstrap --variant=minbase --include="$packages" "$suite" "$root" \
  ${WINDTUNNEL_DEBIAN_MIRROR:+"$WINDTUNNEL_DEBIAN_MIRROR"} >build/debootstrap.log 2>&1 \
  || {
    tail -n 5 build/debootstrap.log >&2
    say "debootstrap failed, see build/debootstrap.log"
    exit 1
  }
tar -C "$root" -c --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
  --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/man/*' . \
  | docker import - "$image" >/dev/null
use
say "ready: $image"
