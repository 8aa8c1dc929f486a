"""What runs: handlings, their handlers and model calls, what they show, and the mailboxes that say who is next."""
