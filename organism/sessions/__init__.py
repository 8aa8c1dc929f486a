"""Conversations: the commands for sessions, their compaction, and the line of sessions that it makes."""
