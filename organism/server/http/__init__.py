"""What every request and connection needs: who asks, what may come, and what an error looks like."""
