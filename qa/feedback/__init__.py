"""What thumbs and experts say, as plain values: how it is weighed and what it is worth."""
