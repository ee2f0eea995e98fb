"""What generated examples share."""

from typing import Final

from hypothesis import HealthCheck

# For a test whose examples share a fixture's database on purpose. Naming checks of its own
# takes back what the suite's profile leaves out, so that is said again.
SHARED_FIXTURES: Final = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
