"""Who decides best when to retrieve: every decider on the same questions, once asked.

What costs time (answers, signals) is asked once and kept; thresholds are replayed on it.
"""
