"""Automatic enrichment: a language model proposes entries for curators to approve.

Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041), 3.3.
"""
