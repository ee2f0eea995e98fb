"""The verifier: whether an entry answers a question, judged from both texts."""
