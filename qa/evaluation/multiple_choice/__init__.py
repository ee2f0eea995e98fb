"""Multiple choice under refusal: Learn to Refuse's experiments, for any language model."""

# The suites are opened by `qa.evaluation.suites`, which lends their options: whichever
# of the two packages is imported first, that one begins.
import qa.evaluation.suites  # noqa: F401
