#!/usr/bin/env bash
# A container engine of the CI's own, for as long as its tests run.
#
#   .ci/engine.sh start    install what is missing (root on Debian) and start dockerd, unless an
#                          engine responds already; fails if this machine cannot run one
#   .ci/engine.sh stop     stop what `start` started; nothing if it started nothing
set -euo pipefail
cd "$(dirname "$0")/.."

# On the real disk and short: sockets live below it.
state=${WINDTUNNEL_ENGINE:-/var/tmp/windtunnel-engine}
plugins=${DOCKER_CONFIG:-${HOME:-/}/.docker}/cli-plugins

say() { printf 'engine: %s\n' "$*" >&2; }

answers() { docker info >/dev/null 2>&1; }

fetch_plugin() {
  # Debian 12 has no compose plugin; that of the next release runs there. It is unpacked, and the
  # machine's own list of package sources stays as it is.
  local private=$state/apt options package=docker-compose mirror
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null \
    | grep -m 1 '/debian$') || return 1
  mkdir -p "$private/lists/partial" "$private/archives/partial" "$private/parts"
  printf 'deb [signed-by=%s] %s trixie main\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg "$mirror" >"$private/sources.list"
  options=(-qq -o "Dir::Etc::sourcelist=$private/sources.list"
    -o "Dir::Etc::sourceparts=$private/parts"
    -o "Dir::State::lists=$private/lists" -o "Dir::Cache::archives=$private/archives"
    -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  (cd "$private" && apt-get "${options[@]}" download "$package")
  dpkg -x "$private"/$package*.deb "$private/root"
  mkdir -p "$plugins"
  find "$private/root" -path '*cli-plugins*' -type f -exec cp {} "$plugins/" \;
}

install_missing() {
  if ! command -v dockerd >/dev/null; then
    say "installing docker.io"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 \
      install --no-install-recommends docker.io iptables debootstrap
  fi
  if ! docker compose version >/dev/null 2>&1; then
    say "fetching the compose plugin"
    fetch_plugin || say "no compose plugin: its tests will be left out by name"
  fi
}

start() {
  answers && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  mkdir -p "$state"
  install_missing >"$state/install.log" 2>&1 || { tail -n 5 "$state/install.log" >&2; return 1; }
  # dockerd would start containerd itself, but gives it fifteen seconds, too little for a slow disk.
  # Their own groups: the CI's shell may be killed by its group, and the engine must stop cleanly.
  printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >"$state/containerd.toml"
  rm -f "$state/containerd.sock"
  setsid containerd --config "$state/containerd.toml" --address "$state/containerd.sock" \
    --root "$state/containerd" --state "$state/containers" \
    >"$state/containerd.log" 2>&1 </dev/null &
  echo $! >"$state/containerd.pid"
  for _ in $(seq 240); do
    [ -S "$state/containerd.sock" ] && break
    sleep 0.5
  done
  setsid dockerd --data-root "$state/data" --exec-root "$state/exec" --pidfile "$state/pid" \
    --containerd "$state/containerd.sock" >"$state/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 240); do
    sleep 0.5
    answers && return
  done
  tail -n 5 "$state/containerd.log" "$state/dockerd.log" >&2
  stop
  return 1
}

stop() {
  local file pid
  for file in "$state/pid" "$state/containerd.pid"; do
    pid=$(cat "$file" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 60); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.25
    done
    rm -f "$file"
  done
  rm -f "$state/containerd.sock"
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  *) say "usage: .ci/engine.sh start|stop"; exit 64 ;;
esac
