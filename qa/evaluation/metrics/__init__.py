"""What an evaluation counts: plain functions of labels, scores and texts.

Nothing here knows a model or a database. Definitions, ranges, directions and the
reference that each is checked against: docs/reference/evaluation-metrics.md.
"""
