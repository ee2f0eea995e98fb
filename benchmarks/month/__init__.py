"""A simulated month on the demonstration: asked, voted on, reviewed, learnt from."""
