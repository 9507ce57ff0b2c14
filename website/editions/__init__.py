"""The PDF and the ePub, made from the built site."""
