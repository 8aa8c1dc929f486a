"""Agents that think: prompts as data, models behind one gateway, the turn loop."""
