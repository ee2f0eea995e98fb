"""Shared settings for Hypothesis tests."""

from typing import Final

from hypothesis import HealthCheck

# Health checks to suppress in a test whose examples share a fixture's database on
# purpose. They replace those of the suite's profile, so `too_slow` is repeated here.
SHARED_FIXTURES: Final = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
