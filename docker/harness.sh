#!/bin/sh
# The harness service of compose.yaml: runs one suite, then stops the other containers.
# Exit code: that of `windtunnel run`; 3 if the image does not match the clone.
set -u

if ! cmp -s requirements.lock /opt/windtunnel/requirements.lock; then
  echo "harness: the image was built from another requirements.lock; run: docker compose build" >&2
  status=3
else
  # WINDTUNNEL_ARGS may have several words.
  # shellcheck disable=SC2086
  python -m windtunnel.harness run --fidelity compose ${WINDTUNNEL_ARGS:-} &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' INT TERM
  wait "$child"
  status=$?
  # A signal ends `wait`, but not the child, which removes its lab first.
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
fi
# The files that root wrote are given to the owner of the clone.
chown -R --reference=compose.yaml runs
python -m windtunnel.harness.orchestrate.labs.agent_link stop
exit "$status"
