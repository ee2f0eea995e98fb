"""A calibration set made from the knowledge base itself: questions about its entries.

`drawing` makes the questions, `measuring` runs them through search and verifier, and
`choosing` chooses the threshold.
"""
