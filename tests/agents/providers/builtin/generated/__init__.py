"""Requests of a model that answers for itself, made by chance of phrases and of what stands in them.

``phrases/`` holds eight sets of phrases, each with tools, facts and fields of its own. Each but the first was written
before the model was improved with it, and measured before it was looked at (docs/adr/0043).
"""
