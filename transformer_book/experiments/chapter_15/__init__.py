"""Chapter 15: what the model of today is worth, and what it can and cannot compute."""

from pathlib import Path

HERE = Path(__file__).parent
