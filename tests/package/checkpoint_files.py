"""The insides of a checkpoint, for tests that look at them and that spoil them."""

import json

import torch
from safetensors.torch import load_file, save_file

from transformer.tensors import digest_of


def read_about(file):
    """The JSON object in it."""
    return json.loads(load_file(file)["about"].numpy().tobytes())


def write_about(file, about):
    data = about if isinstance(about, bytes) else json.dumps(about).encode()
    change_tensor(file, "about", torch.frombuffer(bytearray(data), dtype=torch.uint8))


def change_about(file, change):
    """Edits the JSON object by a function."""
    about = read_about(file)
    change(about)
    write_about(file, about)


def change_tensor(file, name, tensor):
    """Puts another tensor into it, as if it had been saved so."""
    tensors = {key: value.clone() for key, value in load_file(file).items()} | {name: tensor}
    del tensors["sha256"]
    digest = bytearray.fromhex(digest_of(tensors))
    save_file(tensors | {"sha256": torch.frombuffer(digest, dtype=torch.uint8)}, file)
