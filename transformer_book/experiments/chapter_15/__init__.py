"""Chapter 15: what the parts of the model of today are worth."""

from pathlib import Path

HERE = Path(__file__).parent
