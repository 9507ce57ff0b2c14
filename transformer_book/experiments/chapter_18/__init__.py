"""Chapter 18: what written steps, rewards, votes and a teacher are worth."""
