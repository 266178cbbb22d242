# One image for every program of volcano_py; what runs is the command (vc-scheduler unless another is named).
#   docker build -t volcano-py:0.1.0 .
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

# Wheels of the project and of everything it needs, then an installation from these wheels alone.
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# strip. No version is pinned: it goes no further than this stage.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
# Where packages come from, for this stage alone: docker build --build-arg PIP_INDEX_URL=... .
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ARG PIP_FIND_LINKS
ARG PIP_CERT
ARG PIP_DEFAULT_TIMEOUT
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY manifests/crds/ manifests/crds/
COPY manifests/webhooks/configurations.yaml manifests/webhooks/
COPY volcano_py/ volcano_py/
RUN python -m pip wheel --wheel-dir=/wheels ".[fast]"
RUN python -m venv --without-pip /opt/volcano-py \
    && python -m pip --python /opt/volcano-py/bin/python install --no-index --find-links=/wheels "volcano-py[fast]" \
    && /opt/volcano-py/bin/vc-scheduler --version
COPY manifests/image/slim.sh /slim.sh
RUN /slim.sh /opt/volcano-py

# The same Python with the installation copied in: no compiler, no wheels, no pip.
FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="volcano-py" \
      org.opencontainers.image.description="A batch scheduler for Kubernetes that takes Volcano's place" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/volcano-py /opt/volcano-py
# The root file system may be read-only: bytecode was written at the installation, and nothing else is.
ENV PATH=/opt/volcano-py/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that Kubernetes can see that it is not root.
USER 1000:1000
# Metrics; health.
EXPOSE 8080 11251
CMD ["vc-scheduler"]
