"""A calibration set out of the knowledge base itself: its own questions, asked of itself.

`drawing` makes the questions, `measuring` asks them of search and verifier, and `choosing`
takes the threshold.
"""
