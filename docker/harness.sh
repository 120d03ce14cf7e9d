#!/bin/sh
# The harness service of compose.yaml: one suite, then the other containers are told to end.
# Exit code: that of `windtunnel run`; 3 if the image does not fit the clone.
set -u

if ! cmp -s requirements.lock /opt/windtunnel/requirements.lock; then
  echo "harness: the image was built from another requirements.lock; type: docker compose build" >&2
  status=3
else
  # WINDTUNNEL_ARGS holds several words.
  # shellcheck disable=SC2086
  python -m windtunnel.harness run --fidelity compose ${WINDTUNNEL_ARGS:-} &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' INT TERM
  wait "$child"
  status=$?
  # A signal ends the wait, not the child: that one takes its lab down first.
  while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
  done
fi
# What root wrote belongs to whoever owns the clone.
chown -R --reference=compose.yaml runs
python -m windtunnel.harness.orchestrate.labs.agent_link stop
exit "$status"
