"""What knowing one's own activations is worth: the figures of abstention.

References:
    "Confidence-based response abstinence: improving LLM trustworthiness via
    activation-based uncertainty estimation" (Huang et al., 2025), tables 1, 2 and 4.
"""
