"""What Sphinx does with chapters in plain Markdown, listed in ``_config.yml``."""
