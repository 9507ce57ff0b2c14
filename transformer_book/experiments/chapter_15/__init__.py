"""Chapter 15: what the parts of the model of today are worth."""
