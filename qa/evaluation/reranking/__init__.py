"""What a reranker is worth that was fitted on a language model's own preferences.

Beside it the gate that lets the model answer by itself: each one's gain apart.
"""
