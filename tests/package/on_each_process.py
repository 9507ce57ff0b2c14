"""What test_processes.py runs under torchrun: a few steps, and what they leave in a folder.

torchrun --nproc-per-node 2 tests/package/on_each_process.py FOLDER
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches
from transformer.model import Transformer
from transformer.training import fit, warmup_schedule

N_STEPS, N_TOGETHER, ACCUMULATE = 5, 8, 2


def examples():
    """Pairs of many lengths, so that no two processes have as many tokens."""
    g = torch.Generator().manual_seed(0)
    sides = ([*torch.randint(3, 23, (2 + i % 7,), generator=g).tolist(), 2] for i in range(96))
    return [(src, [1, *tgt]) for src, tgt in zip(sides, sides, strict=False)]


def of_two_groups(model):
    """The optimizer of most models of today: biases and norms aren't drawn to 0."""
    named = list(model.named_parameters())
    vectors = [p for name, p in named if p.dim() == 1]
    groups = [
        {"params": [p for _, p in named if p.dim() > 1]},
        {"params": vectors, "weight_decay": 0},
    ]
    # so large an eps, else a gradient of 0 makes whole steps of its rounding errors
    return torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1, eps=1e-3)


def learn(*, rank=0, world_size=1, shard=lambda model: model, optimizer=lambda model: None):
    """The losses, and the model; of all processes together N_TOGETHER pairs a batch."""
    torch.manual_seed(0)
    config = TransformerConfig.tiny(23, 23, d_model=16, d_ff=24, dropout=0.0)
    model = shard(Transformer(config))
    size = N_TOGETHER // world_size
    batches = BucketedBatches(examples(), batch_size=size, rank=rank, world_size=world_size)
    options = {
        "optimizer": optimizer(model),
        "schedule": warmup_schedule(0.01, warmup=3),
        "clip_norm": 0.5,
        "progress": False,
    }
    history = fit(model, batches, n_steps=N_STEPS, accumulate=ACCUMULATE, device="cpu", **options)
    return history.losses, model


def sharded(model):
    """PyTorch's own sharding: each process keeps its part of each layer's weights."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


KINDS = {
    "copied": {},
    "sharded": {"shard": sharded},
    "copied by AdamW": {"optimizer": of_two_groups},
    "sharded by AdamW": {"shard": sharded, "optimizer": of_two_groups},
}


def whole(model):
    """Its weights; those of a sharded model are gathered from all processes."""
    state = model.state_dict().items()
    return {name: getattr(x, "full_tensor", lambda x=x: x)() for name, x in state}


def main(folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for kind, options in KINDS.items():
        losses, model = learn(rank=rank, world_size=world_size, **options)
        local = [getattr(p, "to_local", lambda p=p: p)() for p in model.parameters()]
        result = {"losses": losses, "kept": sum(x.numel() for x in local), "weights": whole(model)}
        torch.save(result, Path(folder) / f"{kind}-{rank}-of-{world_size}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
