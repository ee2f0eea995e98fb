"""Loads what is imported where it is used, before hypothesis watches the clock."""

import sklearn.metrics  # noqa: F401
import statsmodels.stats.contingency_tables
import statsmodels.stats.proportion  # noqa: F401
