"""The look at every page of the built site."""
