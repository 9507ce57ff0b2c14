"""Decoding of 16 sentences, greedy and with beams: all make as many tokens, and none ends early."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import peers
from benchmarks.settings import BOS_ID, EOS_ID, PAD_ID, SETTINGS, sentences
from benchmarks.timing import Cases
from transformer import decoding
from transformer.data.text import Vocabulary
from transformer.decoding import greedy_decode
from transformer.export import save_marian
from transformer.model import Transformer

LENGTH_PENALTY = 0.6
Decode = Callable[[Tensor, int, int], object]  # sources, number of new tokens, number of beams


def greedy_decoding(setting: str, device: torch.device) -> tuple[Cases, dict]:
    """Our cache beside every mode of each peer."""
    s = SETTINGS[setting]
    src, _ = sentences(s, device, size=16)
    cases: Cases = {}
    for name, model in peers.build(s, device).items():
        model.eval()
        for mode, greedy in model.greedy.items():
            assert greedy(src, s.new_tokens).shape == (16, s.new_tokens), name
            cases[f"{name}, {mode}"] = partial(greedy, src, s.new_tokens)
    return cases, {}


def beam_search(setting: str, device: torch.device) -> tuple[Cases, dict]:
    """Our beams beside ``generate`` and CTranslate2, which have the same weights by ``export``."""
    s = SETTINGS[setting]
    src, _ = sentences(s, device, size=16)
    model = peers.build(s, device, only=("ours",))["ours"]
    assert isinstance(model, peers.Ours)
    with tempfile.TemporaryDirectory() as folder:
        decoders: dict[str, Decode] = {"ours": partial(ours, model.model.eval())}
        decoders |= exported(model.model, Path(folder))
    cases: Cases = {}
    for n_beams, way in ((4, "4 beams"), (1, "greedy")):
        for name, decode in decoders.items():
            cases[f"{name}, {way}"] = partial(decode, src, s.new_tokens, n_beams)
    return cases, {}


def ours(model: Transformer, src: Tensor, n: int, n_beams: int) -> Tensor:
    if n_beams == 1:
        return greedy_decode(model, src, bos_id=BOS_ID, eos_id=EOS_ID, max_len=n)
    return decoding.beam_search(
        model,
        src,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        max_len=n,
        beam_size=n_beams,
        length_penalty=LENGTH_PENALTY,
        early_stopping=True,
    )[0]


def exported(model: Transformer, folder: Path) -> dict[str, Decode]:
    """Makes, by name, what decodes with these weights as our export and CTranslate2 have them.

    CTranslate2, which runs on CPUs, takes part where it is installed.
    """
    import transformers

    transformers.logging.set_verbosity_error()
    device = model.output.weight.device
    words = Vocabulary(f"word{i}" for i in range(model.config.src_vocab_size - 4))
    save = partial(save_marian, model, src_tokenizer=words, tgt_tokenizer=words)
    save(folder / "marian")
    marian = transformers.MarianMTModel.from_pretrained(folder / "marian").eval().to(device)
    decoders: dict[str, Decode] = {"HF Marian": partial(generate, marian)}
    try:
        import ctranslate2
        from ctranslate2.converters import TransformersConverter
    except ImportError as error:
        print(f"without CTranslate2: {error}")
        return decoders
    save(folder / "zero", start_from_zero=True)
    TransformersConverter(str(folder / "zero")).convert(str(folder / "converted"))
    for kind in ("float32", "int8"):
        threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
        translator = ctranslate2.Translator(str(folder / "converted"), compute_type=kind, **threads)
        texts = words.words(range(len(words)))
        decoders[f"CTranslate2 {kind}"] = partial(translate, translator, texts)
    return decoders


@torch.inference_mode()
def generate(marian, src: Tensor, n: int, n_beams: int) -> Tensor:
    length: dict[str, float] = {"min_new_tokens": n, "max_new_tokens": n, "num_beams": n_beams}
    length |= {"length_penalty": LENGTH_PENALTY} if n_beams > 1 else {}
    return marian.generate(src, attention_mask=(src != PAD_ID).long(), **length)[:, 1:]


def translate(translator, words: list[str], src: Tensor, n: int, n_beams: int) -> list:
    texts = [[words[i] for i in row if i != PAD_ID] for row in src.tolist()]
    length = {"min_decoding_length": n, "max_decoding_length": n}
    return translator.translate_batch(
        texts,
        beam_size=n_beams,
        length_penalty=LENGTH_PENALTY,
        max_batch_size=len(texts),
        **length,
    )
