"""What a checkpoint holds, for tests that look at it and that change it."""

import io
from hashlib import sha256

import torch


def read_about(file):
    return torch.load(file, weights_only=True)


def write_about(file, about):
    """Puts anything into a checkpoint, as if it had been saved so."""
    data = io.BytesIO()
    torch.save(about, data)
    file.write_bytes(data.getvalue() + sha256(data.getvalue()).digest())


def change_about(file, change):
    """Edits what a checkpoint holds by a function."""
    about = read_about(file)
    change(about)
    write_about(file, about)
