"""A calibration set out of the knowledge base itself: questions made from its entries.

`drawing` makes the questions, `measuring` asks them of search and verifier, and `choosing`
takes the threshold.
"""
