"""Chapter 16: what a cache costs, and what it is worth."""

from pathlib import Path

HERE = Path(__file__).parent
