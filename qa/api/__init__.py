"""The REST interface of asking: questions, answers, votes, the playground, policies."""
