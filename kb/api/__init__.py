"""Knowledge over REST: entry points only translate; what they may do stands in services."""
