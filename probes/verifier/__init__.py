"""The verifier: whether an entry answers a question, from both read together."""
