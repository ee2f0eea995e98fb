"""What a language model knows by itself, and how sure that is: one module a method."""
