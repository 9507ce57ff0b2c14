"""Chapter 18: what written steps, rewards, votes and a teacher are worth."""

from pathlib import Path

HERE = Path(__file__).parent
