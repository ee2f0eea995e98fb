"""Plain functions of labels, scores and texts: docs/reference/evaluation-metrics.md."""
