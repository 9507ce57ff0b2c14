"""Chapter 17: what serving costs, what more answers buy, and what a small model can be taught."""
