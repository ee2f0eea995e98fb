"""A cross-encoder that ranks first the notes that make a model more confident.

References:
    "Rethinking LLM parametric knowledge as confidence for effective and efficient RAG",
    sections 3.2 and 3.3 (CBDR): the preference data set and InfoNCE.
"""
