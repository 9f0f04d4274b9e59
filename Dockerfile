# fairwave from its wheel. `make dist` writes the wheel to dist/; then:
#   docker build --tag fairwave .                                    for CPUs
#   docker build --tag fairwave:cuda --build-arg VARIANT=cuda .      for NVIDIA GPUs; run it with --gpus all
# docs/containers.md says how to run it.
ARG PYTHON=3.12
ARG VARIANT=cpu

FROM python:${PYTHON}-slim AS cpu
ARG EXTRAS=flower
# nginx is the gate of a federation's access point.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends nginx-light \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt dist/*.whl /tmp/wheel/
RUN pip install --no-cache-dir --constraint /tmp/wheel/constraints.txt "$(ls /tmp/wheel/*.whl)[${EXTRAS}]" \
    && rm -r /tmp/wheel

FROM cpu AS cuda
# The libraries of CUDA come from the package index, for the version of JAX that is installed; the host has the driver.
RUN jax="$(python -c 'import importlib.metadata; print(importlib.metadata.version("jax"))')" \
    && pip install --no-cache-dir "jax[cuda12]==${jax}"

# hadolint ignore=DL3006
FROM ${VARIANT} AS final
COPY docker/healthcheck.py /usr/local/lib/fairwave-healthcheck.py
RUN useradd --create-home --home-dir /var/lib/fairwave --uid 1000 --user-group fairwave \
    && install --directory --owner=1000 --group=1000 /work
USER 1000:1000
WORKDIR /work
# FAIRWAVE_ROLE is what the container is in a federation: device, superlink, gate or federation. A container without a
# role counts as healthy for as long as it runs.
ENV HOME=/var/lib/fairwave \
    PYTHONUNBUFFERED=1 \
    FAIRWAVE_ROLE=""
HEALTHCHECK --interval=30s --timeout=25s --start-period=2m --retries=3 \
    CMD ["python", "/usr/local/lib/fairwave-healthcheck.py"]
CMD ["fairwave", "--help"]
