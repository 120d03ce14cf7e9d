#!/usr/bin/env bash
# Builds an image if it is missing or was built from another lock file. `docker compose build` does
# the same if the public base image can be pulled.
#
#   docker/build.sh          windtunnel:local, for the lab of containers
#   docker/build.sh spark    windtunnel-spark:local, based on it, for the profile spark
set -euo pipefail
cd "$(dirname "$0")/.."

lab=windtunnel:local
spark=windtunnel-spark:local
spark_lock=docker/requirements-spark.lock
[ -f .env ] && . ./.env
base=${WINDTUNNEL_BASE_IMAGE:-debian:trixie-slim}
authorities=${WINDTUNNEL_CA_BUNDLE:-/etc/ssl/certs/ca-certificates.crt}

say() { printf 'image: %s\n' "$*" >&2; }

recipe_of() {
  docker image inspect --format '{{index .Config.Labels "windtunnel.recipe"}}' "$1" 2>/dev/null
}

has_buildkit() {
  # Included in old versions of the docker command; newer ones need a plugin.
  docker buildx version >/dev/null 2>&1 && return
  [ "$(docker version --format '{{.Client.Version}}' | cut -d. -f1)" -lt 23 ]
}

fetch() {
  # Downloads wheels for the Python of the base image on the host, which has the proxy settings.
  local version machine
  version=$(docker run --rm "$base" python3 -c \
    'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3.13)
  machine=$(docker version --format '{{.Server.Arch}}' | sed 's/amd64/x86_64/; s/arm64/aarch64/')
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --require-hashes \
    --only-binary=:all: --python-version "$version" --platform "manylinux_2_28_$machine" \
    --platform "manylinux_2_27_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" --dest docker/wheelhouse "$@"
}

fill_wheelhouse() {
  rm -f docker/wheelhouse/*.whl
  if [ "$1" = $lab ]; then
    fetch -r requirements.lock
    return
  fi
  # Spark is distributed as source only; pip has cached the wheel that it built for .venv.
  awk '/^pyspark==/ { found = 1; print; next } found && !/^ / { exit } found' $spark_lock \
    >docker/wheelhouse/pyspark.txt
  .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --require-hashes --no-deps \
    --no-build-isolation --wheel-dir docker/wheelhouse -r docker/wheelhouse/pyspark.txt || return
  awk '/^[a-z]/ { other = !/^pyspark==/ } other' $spark_lock >docker/wheelhouse/others.txt
  fetch --no-deps -r docker/wheelhouse/others.txt || return
  rm docker/wheelhouse/*.txt
}

fill_kernels() {
  # Containers can use what this machine has compiled, if their Python is the same.
  clear_kernels
  .venv/bin/python -c 'from pathlib import Path
from windtunnel.driver.kernels.cache import copy_to
copy_to(Path("docker/kernels"))' || clear_kernels
}

clear_kernels() {
  find docker/kernels -mindepth 1 -maxdepth 1 ! -name .gitignore -exec rm -rf {} +
}

build() {
  # IMAGE DOCKERFILE RECIPE ARG...
  local image=$1 file=$2 options=(--label "windtunnel.recipe=$3" --tag "$1")
  shift 3
  options+=("$@")
  if has_buildkit; then
    [ -f "$authorities" ] && options+=(--secret "id=ca_bundle,src=$authorities")
    DOCKER_BUILDKIT=1 docker build "${options[@]}" --file "$file" .
  else
    # The classic builder has no mounts, so the wheels are part of its context.
    fill_wheelhouse "$image" || return
    sed '/^ *--mount=/d; s/^RUN --mount=.*/RUN \\/' "$file" >docker/wheelhouse/Dockerfile
    local status=0
    DOCKER_BUILDKIT=0 docker build "${options[@]}" --file docker/wheelhouse/Dockerfile . \
      || status=$?
    rm -f docker/wheelhouse/*.whl docker/wheelhouse/Dockerfile
    return $status
  fi
}

ensure() {
  # Builds the image unless it has this recipe.
  [ "$(recipe_of "$1")" = "$3" ] && return
  say "building $1"
  fill_kernels >"build/image.log" 2>&1
  build "$@" >>"build/image.log" 2>&1 || {
    clear_kernels
    tail -n 15 build/image.log >&2
    say "failed, see build/image.log"
    exit 1
  }
  clear_kernels
  say "ready: $1"
}

recipe() { cat "$@" | sha256sum | cut -d' ' -f1; }

lab_image() {
  local expected
  expected=$(recipe requirements.lock docker/Dockerfile)
  [ "$(recipe_of $lab)" = "$expected" ] && return
  if ! docker image inspect "$base" >/dev/null 2>&1 \
    && ! docker pull --quiet "$base" >/dev/null 2>&1; then
    say "cannot pull $base: building windtunnel/base:local instead"
    docker/base-image.sh
    base=windtunnel/base:local
  fi
  ensure $lab docker/Dockerfile "$expected" --build-arg "BASE_IMAGE=$base"
}

mkdir -p build
# Two builds at the same time would remove each other's wheels and kernels.
exec 9>build/image.lock
command -v flock >/dev/null && flock 9
case ${1:-lab} in
  lab) lab_image ;;
  spark)
    lab_image
    expected=$(recipe requirements.lock docker/Dockerfile $spark_lock docker/spark.Dockerfile)
    ensure $spark docker/spark.Dockerfile "$expected" --build-arg "LAB_IMAGE=$lab"
    ;;
  *) say "usage: docker/build.sh [spark]"; exit 64 ;;
esac
