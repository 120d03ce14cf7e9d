#!/usr/bin/env bash
# Builds windtunnel:local, the image of compose.yaml and of `windtunnel run --fidelity compose`, if
# it is missing or was made from another lock file. `docker compose build` does the same where the
# public base image can be pulled.
set -euo pipefail
cd "$(dirname "$0")/.."

image=windtunnel:local
[ -f .env ] && . ./.env
base=${WINDTUNNEL_BASE_IMAGE:-debian:trixie-slim}
authorities=${WINDTUNNEL_CA_BUNDLE:-/etc/ssl/certs/ca-certificates.crt}
recipe=$(cat requirements.lock docker/Dockerfile | sha256sum | cut -d' ' -f1)

say() { printf 'image: %s\n' "$*" >&2; }

made_from() {
  docker image inspect --format '{{index .Config.Labels "windtunnel.recipe"}}' $image 2>/dev/null
}

has_buildkit() {
  # Old command lines bring it along, newer ones ask for a plugin.
  docker buildx version >/dev/null 2>&1 && return
  [ "$(docker version --format '{{.Client.Version}}' | cut -d. -f1)" -lt 23 ]
}

fill_wheelhouse() {
  # The wheels for the Python of the base image, fetched by the host, which knows its own proxy.
  local version machine
  version=$(docker run --rm "$base" python3 -c \
    'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3.13)
  machine=$(docker version --format '{{.Server.Arch}}' | sed 's/amd64/x86_64/; s/arm64/aarch64/')
  rm -f docker/wheelhouse/*.whl
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --require-hashes \
    --only-binary=:all: --python-version "$version" --platform "manylinux_2_28_$machine" \
    --platform "manylinux_2_27_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" --dest docker/wheelhouse -r requirements.lock
}

build() {
  local options=(--label "windtunnel.recipe=$recipe" --build-arg "BASE_IMAGE=$base" --tag $image)
  if has_buildkit; then
    [ -f "$authorities" ] && options+=(--secret "id=ca_bundle,src=$authorities")
    DOCKER_BUILDKIT=1 docker build "${options[@]}" --file docker/Dockerfile .
  else
    # The classic builder knows no mounts, so it gets the wheels with its context.
    fill_wheelhouse
    sed '/^ *--mount=/d; s/^RUN --mount=.*/RUN \\/' docker/Dockerfile >docker/wheelhouse/Dockerfile
    DOCKER_BUILDKIT=0 docker build "${options[@]}" --file docker/wheelhouse/Dockerfile .
    rm -f docker/wheelhouse/*.whl docker/wheelhouse/Dockerfile
  fi
}

mkdir -p build
[ "$(made_from)" = "$recipe" ] && exit 0
if ! docker image inspect "$base" >/dev/null 2>&1 \
  && ! docker pull --quiet "$base" >/dev/null 2>&1; then
  say "cannot pull $base: making a base of our own"
  docker/base-image.sh
  base=windtunnel/base:local
fi
say "building $image on $base"
build >build/image.log 2>&1 || {
  tail -n 15 build/image.log >&2
  say "failed, see build/image.log"
  exit 1
}
say "ready: $image"
