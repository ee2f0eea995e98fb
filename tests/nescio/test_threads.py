"""Threads of the numeric libraries: more than free cores make fits many times slower."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

pytestmark = pytest.mark.slow

LOADED = """
import json, django, threadpoolctl
django.setup()
import scipy.linalg, sklearn.linear_model
print(json.dumps([each["num_threads"] for each in threadpoolctl.threadpool_info()]))
"""


@pytest.mark.parametrize(
    ("chosen", "threads"),
    [
        ({"NESCIO_TORCH_THREADS": "1"}, 1),
        ({"NESCIO_TORCH_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}, 2),
    ],
)
def test_numeric_libraries_use_as_many_as_models_unless_their_own_variable_is_set(
    chosen, threads
):
    libraries = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    others = {n: value for n, value in os.environ.items() if n not in libraries}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=settings.BASE_DIR,
        env=others | {"DJANGO_SETTINGS_MODULE": "nescio.settings"} | chosen,
        check=True,
        capture_output=True,
        text=True,
    )

    assert max(json.loads(done.stdout)) == min(threads, os.cpu_count() or 1)
