"""The browser that tests and benchmarks drive."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# The shell is the browser without its own pages, in which tests are up to a quarter faster.
CHROMIUM = (
    os.environ.get("NESCIO_CHROMIUM")
    or shutil.which("chromium-headless-shell")
    or shutil.which("chromium")
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run it without a window until the block ends."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield launched
        launched.close()
