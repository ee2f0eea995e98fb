"""A simulated month on the demonstration: questions, votes, reviews and retraining."""
