# The Spark image: the image of the lab with Java and Spark, for the master, the workers and the
# analysis of the profile `spark` of compose; see docker/README.md.

ARG LAB_IMAGE=windtunnel:local

FROM ${LAB_IMAGE} AS java
# Java's alternatives need the folder of manual pages, which the base image may lack.
RUN command -v java >/dev/null \
    || { mkdir -p /usr/share/man/man1 \
      && apt-get update -qq \
      && apt-get install -qq -y --no-install-recommends default-jre-headless >/dev/null 2>&1 \
      && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb; } \
    && java -version

FROM java AS packages
COPY docker/requirements-spark.lock docker/wheelhouse /build/
# Wheels from the host were verified there. That of Spark was built there and has no locked hash.
RUN --mount=type=secret,id=ca_bundle \
    --mount=type=cache,target=/var/cache/pip \
    set -e; \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi; \
    if ls /build/*.whl >/dev/null 2>&1; then \
      sed -i '/^ *--hash=/d; s/ \\$//' /build/requirements-spark.lock; \
      export PIP_NO_INDEX=1 PIP_FIND_LINKS=/build; \
    fi; \
    python -m ensurepip >/dev/null; \
    python -m pip install --quiet --disable-pip-version-check --no-input \
      --cache-dir /var/cache/pip --no-deps --no-build-isolation --no-compile --target /opt/spark \
      -r /build/requirements-spark.lock

FROM java
COPY --from=packages /opt/spark /opt/spark
COPY docker/requirements-spark.lock /opt/spark/requirements-spark.lock
ENV PYTHONPATH=/opt/spark \
    SPARK_HOME=/opt/spark/pyspark \
    PYSPARK_PYTHON=/opt/windtunnel/bin/python
