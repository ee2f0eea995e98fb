"""What verdicts by past questions are worth (DH-ICL), on public questions."""
