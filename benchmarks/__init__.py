"""How fast the package is, beside nn.Transformer, x-transformers and Hugging Face's models."""
