"""Abstention: whether an answer is to be shown, judged from the model's own activations.

Importing this package imports torch.

References:
    "Confidence-based response abstinence" (the paper in the project's mission): an LSTM
    over the activations of the answer's tokens, regularised by a Huber term.
"""
