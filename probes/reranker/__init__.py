"""A reranker that puts first what helps one language model most.

A cross-encoder reads a question and a note together and gives one number. Here it learns
which notes make the language model's boundary probe surer ("confidence shift"), so that
it is bound to that model.

References:
    "Rethinking LLM parametric knowledge as confidence for effective and efficient RAG",
    sections 3.2 and 3.3 (CBDR): the preference data set and InfoNCE.
"""
