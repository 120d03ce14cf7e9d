#!/usr/bin/env bash
# Prepares this clone: the environment .venv, the locked packages, the system packages.
#
#   .ci/setup.sh run     what `make run` needs
#   .ci/setup.sh test    what `make test` needs: the same, and the packages of the tests
#
# Idempotent, and quick when nothing changed: a stamp in .venv names the locks it was made from.
# Root on Debian or Ubuntu gets the missing system packages installed; other users get the
# command to type. Nothing outside .venv, build/ and apt is touched.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:?usage: .ci/setup.sh run|test}
stamp=.venv/windtunnel-setup
kernel_stamp=.venv/windtunnel-kernels
oldest_minor=11
newest_minor=15
lacking=()

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case $mode in
  run) lock=requirements.lock; commands="ip:iproute2 tcpdump:tcpdump" ;;
  test) lock=requirements-test.lock; commands="ip:iproute2 tcpdump:tcpdump chromium:chromium"
        commands+=" linux.uml:user-mode-linux java:default-jre-headless tshark:tshark" ;;
  *) die "unknown mode '$mode'; it is run or test" ;;
esac

# --- system packages ---------------------------------------------------------------------------

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
  say "installing system packages: $*"
  local options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  export DEBIAN_FRONTEND=noninteractive
  {
    apt-get "${options[@]}" install -y --no-install-recommends "$@" \
      || { apt-get "${options[@]}" update \
        && apt-get "${options[@]}" install -y --no-install-recommends "$@"; }
  } >build/apt.log 2>&1
}

hint() {
  if command -v apt-get >/dev/null; then
    say "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
  else
    say "  with your package manager, install what Debian calls: $*"
  fi
}

has_command() {
  # A user's PATH often lacks the administrator's folders, where ip and tcpdump may be.
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null && return
  # Any Chromium-based browser works; Ubuntu's own chromium package is only a pointer to a snap.
  [ "$1" = chromium ] && { command -v google-chrome || command -v chromium-browser; } >/dev/null
}

system_packages() {
  local missing=() pair package
  for pair in $commands; do
    package=${pair##*:}
    # A package that could not be installed once is not tried again: it may not exist here.
    if ! has_command "${pair%%:*}" && ! grep -qsx "lacks $package" "$stamp"; then
      missing+=("$package")
    fi
  done
  if [ ! -x .venv/bin/python ] && [ -z "$(candidates)" ]; then
    missing+=(python3 python3-venv)
  fi
  [ ${#missing[@]} = 0 ] && return
  if can_install; then
    for package in "${missing[@]}"; do
      apt_install "$package" && continue
      say "could not install $package, see build/apt.log; going on without"
      lacking+=("$package")
    done
  else
    say "missing system packages: ${missing[*]}; this user cannot install them. Please type:"
    hint "${missing[@]}"
    say "going on without: \`windtunnel doctor\` says what that costs"
  fi
}

# --- the environment ---------------------------------------------------------------------------

lock_sum() { cat "$1" pyproject.toml setup.py .ci/setup.sh | sha256sum | cut -d' ' -f1; }

works() {
  # A Python that cannot create environments, verify TLS or load C code cannot be used.
  "$1" - "$oldest_minor" "$newest_minor" >/dev/null 2>&1 <<'PY'
import ctypes, ensurepip, lzma, ssl, sqlite3, sys, sysconfig, venv, zlib
oldest, newest = int(sys.argv[1]), int(sys.argv[2])
fits = (3, oldest) <= sys.version_info[:2] <= (3, newest)
final = sys.version_info.releaselevel == "final"
plain = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
sys.exit(0 if fits and final and plain and ssl.create_default_context() else 1)
PY
}

candidates() {
  # Every distinct Python worth trying, newest first, one path a line.
  local minor path
  {
    for minor in $(seq "$newest_minor" -1 "$oldest_minor"); do
      type -ap "python3.$minor" || true
    done
    type -ap python3 || true
    for path in "${PYENV_ROOT:-${HOME:-/}/.pyenv}"/versions/3.*/bin/python; do
      if [ -x "$path" ]; then printf '%s\n' "$path"; fi
    done
  } | while read -r path; do
    works "$path" || continue
    "$path" -c 'import sys; v = sys.version_info
print("%d.%03d.%03d" % v[:3], getattr(sys, "_base_executable", sys.executable))'
  done | sort -ru | cut -d' ' -f2
}

install() {
  .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
    --no-build-isolation "$@" >>build/pip.log 2>&1
}

fill() {
  # pip must take wheels named in the lock and nothing else; output is shown only if it fails.
  : >build/pip.log
  install --require-hashes --only-binary=:all: -r requirements.lock || return 1
  if [ "$lock" != requirements.lock ]; then
    # Spark comes as source only; the setuptools that builds it came with the lock above.
    install --require-hashes --only-binary=:all: --no-binary=pyspark -r "$lock" || return 1
  fi
  install --no-deps --editable .
}

unsupported() { grep -qE 'No matching distribution|requires a different Python' build/pip.log; }

environment() {
  if [ -x .venv/bin/python ] && works .venv/bin/python; then
    say "filling .venv ($(.venv/bin/python -V)) from $lock"
    fill && return
    unsupported || {
      tail -n 5 build/pip.log >&2
      die "pip failed: see build/pip.log"
    }
  fi
  local found python
  found=$(candidates)
  [ -n "$found" ] || die "no Python from 3.$oldest_minor to 3.$newest_minor with venv, pip and ssl"
  for python in $found; do
    say "making .venv with $("$python" -V) ($python)"
    rm -rf .venv
    "$python" -m venv .venv || { say "$python cannot make an environment: passed over"; continue; }
    fill && return
    unsupported || break
    say "some package has no build for $("$python" -V): passed over"
  done
  tail -n 5 build/pip.log >&2
  die "packages could not be installed: see build/pip.log"
}

current() {
  # What `test` installs contains what `run` needs, as long as the locks are the same.
  [ -f "$stamp" ] && .venv/bin/python -c '' 2>/dev/null \
    && grep -qx "$mode $(lock_sum "$lock")" "$stamp"
}

# --- the kernels -------------------------------------------------------------------------------

kernel_sum() {
  find driver harness reports -name '*.py' -print0 | sort -z | xargs -0 cat | sha256sum \
    | cut -d' ' -f1
}

kernels() {
  # The tests start many processes that would otherwise compile the same kernels at the same time.
  # `windtunnel run` compiles what it needs by itself.
  local sum
  [ "$mode" = test ] || return 0
  sum=$(kernel_sum)
  grep -qsx "$sum" "$kernel_stamp" && return
  say "compiling kernels that have changed, which takes minutes if many have"
  if .ci/kernels.sh; then
    printf '%s\n' "$sum" >"$kernel_stamp"
  else
    say "some kernels were not compiled; they are compiled when they are first needed"
  fi
}

mkdir -p build
exec 9>build/setup.lock
command -v flock >/dev/null && flock 9
system_packages
if current; then
  kernels
  exit 0
fi
environment
for package in ${lacking[@]+"${lacking[@]}"}; do
  printf 'lacks %s\n' "$package" >>"$stamp"
done
if [ "$mode" = test ]; then
  printf 'run %s\n' "$(lock_sum requirements.lock)" >>"$stamp"
fi
printf '%s %s\n' "$mode" "$(lock_sum "$lock")" >>"$stamp"
kernels
say "ready: $(.venv/bin/python -V) in .venv"
