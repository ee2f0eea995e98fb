"""Low-rank changes to a language model's weights (Hu et al., "LoRA", ICLR 2022)."""
