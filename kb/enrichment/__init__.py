"""Automatic knowledge enrichment: a language model proposes what a curator may approve.

Three agents, each a form that a model fills in: questions from a seed question, an answer
with a stated confidence, and one declarative sentence of both. The confidence that a model
states is checked against what it does: whether it says the same again, and how likely its
words are to it. Nothing in here writes to the database or knows a model.

References:
    Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
    through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041), 3.3.
"""
