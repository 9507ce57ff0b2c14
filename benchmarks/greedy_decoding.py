"""Greedy decoding of 16 sentences: our cache beside the best mode of each peer.

Every model makes the same number of tokens; none ends early.
Run: python -m benchmarks.greedy_decoding
"""

from functools import partial

import torch

from benchmarks import measure, peers, settings


def verify(
    models: dict[str, peers.Peer], src: torch.Tensor, vocab_size: int
) -> dict[str, bool | None]:
    """Whether each mode with a cache makes the tokens that the model makes without one.

    Meanwhile matrices are replaced by larger, untied ones: as they are initialised, tied models
    repeat their input, and any cache would do. None: they agree, but on too few different tokens
    to tell.
    """
    same = {}
    for name, model in models.items():
        if model.uncached is None:
            continue
        before = {n: t.clone() for n, t in model.state_dict().items()}
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for p in model.parameters():
                if p.dim() == 2 and len(p) != vocab_size:
                    p.copy_(torch.randn(p.shape, generator=generator) * 4 / p.size(1) ** 0.5)
        wanted = model.uncached(src, 16)
        varied = len(wanted.unique()) > 8
        for mode, greedy in model.greedy.items():
            equal = bool((greedy(src, 16) == wanted).all())
            same[f"{name}, {mode}"] = equal if varied or not equal else None
        model.load_state_dict(before)
    return same


def compare(s: settings.Setting, rounds: int, options) -> dict:
    models = {n: m.eval() for n, m in peers.build(s, only=tuple(options.only)).items()}
    src, _ = settings.batch(s, 16)
    same = verify(models, src, s.vocab_size)
    print("cached as uncached:", same)
    cases = {
        f"{name}, {mode}": partial(greedy, src, s.new_tokens)
        for name, model in models.items()
        for mode, greedy in model.greedy.items()
    }
    for name, run in cases.items():
        assert run().shape == (16, s.new_tokens), name
    title = f"greedy decoding, {s.name}, 16 sentences, {s.new_tokens} tokens"
    result = measure.compared(title, cases, rounds, of="ours, cache", cpu_time=options.cpu_time)
    return {"cached_as_uncached": same, "cases": result}


if __name__ == "__main__":
    measure.each_setting("greedy_decoding", __doc__, compare, small=30, base=3)
