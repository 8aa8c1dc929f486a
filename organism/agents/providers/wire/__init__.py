"""Models behind HTTP: what the providers ``openai`` and ``anthropic`` have in common, and how each of them speaks."""
