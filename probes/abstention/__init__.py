"""Whether an answer is to be shown, judged from the model's own activations; needs torch."""
