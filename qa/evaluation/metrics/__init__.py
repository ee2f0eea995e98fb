"""Metrics as pure functions; see docs/reference/evaluation-metrics.md."""
