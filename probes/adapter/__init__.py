"""Adapters: low-rank changes to a language model's weights, fitted here, merged at load.

References:
    Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (ICLR 2022).
"""
