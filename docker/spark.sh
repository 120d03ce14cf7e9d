#!/bin/sh
# Entry point of the services of the profile spark in compose.yaml.
#
#   docker/spark.sh master | worker | analyze [ARGUMENTS OF windtunnel analyze]
#
# Exit code of `analyze`: that of `windtunnel analyze`; 3 if the image does not match the clone.
set -u

master=spark://spark-master:7077
daemon() {
  class=org.apache.spark.deploy.$1
  shift
  exec "$SPARK_HOME/bin/spark-class" "$class" --host "$(hostname -i | cut -d' ' -f1)" "$@"
}

if ! cmp -s docker/requirements-spark.lock /opt/spark/requirements-spark.lock; then
  echo "spark: the image was built from another requirements-spark.lock; run: make spark-image" >&2
  exit 3
fi
role=${1:?usage: docker/spark.sh master|worker|analyze}
shift
case $role in
  master) daemon master.Master --port 7077 --webui-port 8080 ;;
  worker)
    # By default each worker uses all cores of the machine.
    set -- --memory 2g ${WINDTUNNEL_WORKER_CORES:+--cores "$WINDTUNNEL_WORKER_CORES"}
    daemon worker.Worker --webui-port 8081 --work-dir /tmp/spark "$@" "$master"
    ;;
  analyze)
    # Compiled once here, so that the workers do not all compile at the same time.
    python -m windtunnel.reports.analysis.warm_up
    python -m windtunnel.harness analyze --master "$master" "$@"
    status=$?
    # The files that root wrote are given to the owner of the clone.
    chown -R --reference=compose.yaml runs
    exit "$status"
    ;;
esac
