"""The insides of a checkpoint, for tests that look at them and that spoil them."""

import json

import torch
from safetensors.torch import load_file, save_file


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
    tensors = {key: value.clone() for key, value in load_file(file).items()}
    save_file(tensors | {name: tensor}, file)
