"""Multiple choice under refusal: Learn to Refuse's experiments, for any language model."""
