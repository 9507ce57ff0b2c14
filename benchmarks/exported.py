"""Decoding of an exported model: ours beside ``generate`` and CTranslate2, with the same weights.

Sixteen sentences, greedy and with four beams; all make the same number of tokens, none ends early.
CTranslate2 takes part where it is installed (pip install ctranslate2).
Run: python -m benchmarks.exported
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import measure, peers, settings
from transformer.data.text import Vocabulary
from transformer.decoding import beam_search, greedy_decode
from transformer.export import save_marian
from transformer.model import Transformer

BEAMS = (1, 4)
Decode = Callable[[Tensor, int, int], object]  # sources, new tokens, beams


def ours(model: Transformer, src: Tensor, n: int, beams: int) -> Tensor:
    bos, eos = settings.BOS_ID, settings.EOS_ID
    if beams == 1:
        return greedy_decode(model, src, bos_id=bos, eos_id=eos, max_len=n)
    found = beam_search(
        model, src, bos_id=bos, eos_id=eos, max_len=n, beam_size=beams, length_penalty=0.0
    )
    return found[0]


def generate(model, src: Tensor, n: int, beams: int) -> Tensor:
    length: dict[str, float] = {"min_new_tokens": n, "max_new_tokens": n, "num_beams": beams}
    length |= {"length_penalty": 0.0} if beams > 1 else {}
    return model.generate(src, attention_mask=(src != settings.PAD_ID).long(), **length)[:, 1:]


def ctranslate2(translator, words: list[str], src: Tensor, n: int, beams: int) -> list:
    texts = [[words[i] for i in row if i != settings.PAD_ID] for row in src.tolist()]
    length = {"min_decoding_length": n, "max_decoding_length": n, "length_penalty": 0.0}
    return translator.translate_batch(texts, beam_size=beams, max_batch_size=len(texts), **length)


def ways(model: Transformer, folder: Path, threads: int) -> dict[str, Decode]:
    """Each way to decode with these weights, as an exporter and a converter leave them."""
    import transformers

    transformers.logging.set_verbosity_error()
    words = Vocabulary(f"word{i}" for i in range(model.config.src_vocab_size - 4))
    save = partial(save_marian, model, src_tokenizer=words, tgt_tokenizer=words)
    save(folder / "marian")
    marian = transformers.MarianMTModel.from_pretrained(folder / "marian").eval()
    decoders: dict[str, Decode] = {
        "ours": partial(ours, model),
        "generate": partial(generate, marian),
    }
    try:
        import ctranslate2 as ct2
        from ctranslate2.converters import TransformersConverter
    except ImportError as error:
        print(f"without CTranslate2: {error}")
        return decoders
    save(folder / "zero", start_from_zero=True)
    TransformersConverter(str(folder / "zero")).convert(str(folder / "ct2"))
    for kind in ("float32", "int8"):
        options = {"compute_type": kind, "inter_threads": 1, "intra_threads": threads}
        translator = ct2.Translator(str(folder / "ct2"), **options)
        names = words.words(range(len(words)))
        decoders[f"CTranslate2 {kind}"] = partial(ctranslate2, translator, names)
    return decoders


def compare(s: settings.Setting, rounds: int, options) -> dict:
    model = peers.build(s, only=("ours",))["ours"].model.eval()
    src, _ = settings.batch(s, 16)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        decoders = ways(model, Path(folder), options.threads[0])
        cases = {
            f"{name}, {'greedy' if beams == 1 else f'{beams} beams'}": partial(
                decode, src, s.new_tokens, beams
            )
            for beams in BEAMS
            for name, decode in decoders.items()
        }
        if options.only:
            cases = {name: run for name, run in cases.items() if name in options.only}
        title = f"an exported model, {s.name}, 16 sentences, {s.new_tokens} tokens"
        result = measure.compared(
            title, cases, rounds, of="ours, greedy", cpu_time=options.cpu_time
        )
    return {"cases": result}


if __name__ == "__main__":
    measure.each_setting("exported", __doc__, compare, small=20, base=3)
