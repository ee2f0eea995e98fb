"""Automatic knowledge enrichment: a language model proposes what a curator may approve.

Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041), 3.3.
"""
