"""Chapter 16: what a cache costs, and what it is worth."""
