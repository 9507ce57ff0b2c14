"""Beam search of 16 sentences: ours beside Hugging Face's generate and CTranslate2, four beams.

Every model makes the same number of tokens; none ends early. CTranslate2 runs the weights of the
Marian beside it, in float32, and is left out where it is not installed.
Run: python -m benchmarks.beam_search
"""

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import torch

from benchmarks import measure, peers, settings
from transformer.decoding import beam_search

BEAMS, LENGTH_PENALTY = 4, 0.6
Search = Callable[[torch.Tensor, int], torch.Tensor]


def ours(model: peers.Ours, src: torch.Tensor, n: int) -> torch.Tensor:
    return beam_search(
        model.model,
        src,
        bos_id=settings.BOS_ID,
        eos_id=settings.EOS_ID,
        max_len=n,
        beam_size=BEAMS,
        length_penalty=LENGTH_PENALTY,
        early_stopping=True,
    )[0]


@torch.inference_mode()
def generated(model: peers.HuggingFace, src: torch.Tensor, n: int, beams: int) -> torch.Tensor:
    """``min_new_tokens`` takes <eos> its place, as the others do."""
    return model.model.generate(
        src,
        attention_mask=(src != settings.PAD_ID).long(),
        do_sample=False,
        num_beams=beams,
        length_penalty=LENGTH_PENALTY,
        early_stopping=True,
        pad_token_id=settings.PAD_ID,
        decoder_start_token_id=settings.BOS_ID,
        eos_token_id=settings.EOS_ID,
        bad_words_ids=[[settings.PAD_ID]],
        min_new_tokens=n,
        max_new_tokens=n,
    )[:, 1:]


class CTranslate2:
    """A Marian's weights in CTranslate2's format; what it reads and writes are words: "7" is 7."""

    def __init__(self, model: peers.HuggingFace, s: settings.Setting, threads: int):
        import ctranslate2
        from ctranslate2.converters.transformers import BartLoader

        config = model.model.config
        config.normalize_before, config.normalize_embedding = False, False  # as Marian is
        spec = BartLoader().get_model_spec(model.model)
        words = [str(i) for i in range(s.vocab_size)]
        spec.register_source_vocabulary(words)
        spec.register_target_vocabulary(words)
        spec.config.bos_token, spec.config.eos_token = map(str, (settings.BOS_ID, settings.EOS_ID))
        spec.config.unk_token = str(settings.PAD_ID)
        spec.config.decoder_start_token = str(settings.BOS_ID)
        spec.validate()
        with tempfile.TemporaryDirectory() as folder:
            spec.save(folder)
            options = {"compute_type": "float32", "inter_threads": 1, "intra_threads": threads}
            self.translator = ctranslate2.Translator(folder, device="cpu", **options)

    def __call__(self, src: torch.Tensor, n: int, beams: int) -> torch.Tensor:
        sources = [[str(i) for i in row if i != settings.PAD_ID] for row in src.tolist()]
        results = self.translator.translate_batch(
            sources,
            beam_size=beams,
            length_penalty=LENGTH_PENALTY,
            suppress_sequences=[[str(settings.PAD_ID)]],
            min_decoding_length=n,
            max_decoding_length=n,
        )
        return torch.tensor([[int(word) for word in each.hypotheses[0]] for each in results])


def compare(s: settings.Setting, rounds: int, options) -> dict:
    models = {n: m.eval() for n, m in peers.build(s, only=("ours", "HF Marian")).items()}
    src, _ = settings.batch(s, 16)
    searches: dict[str, Search] = {"ours, 4 beams": partial(ours, models["ours"])}
    searches["ours, greedy"] = models["ours"].greedy["cache"]
    searches["HF Marian, 4 beams"] = partial(generated, models["HF Marian"], beams=BEAMS)
    searches["HF Marian, greedy"] = partial(generated, models["HF Marian"], beams=1)
    if find_spec("ctranslate2"):
        translator = CTranslate2(models["HF Marian"], s, options.threads[0])
        searches["CTranslate2, 4 beams"] = partial(translator, beams=BEAMS)
        searches["CTranslate2, greedy"] = partial(translator, beams=1)
    same = {}
    for way in ("4 beams", "greedy"):
        if f"CTranslate2, {way}" in searches:
            pair = (searches[f"{of}, {way}"](src, 8) for of in ("CTranslate2", "HF Marian"))
            same[way] = torch.equal(*pair)
    print("CTranslate2 writes what its Marian writes:", same)
    cases = {name: partial(search, src, s.new_tokens) for name, search in searches.items()}
    for name, run in cases.items():
        assert run().shape == (16, s.new_tokens), name
    title = f"beam search, {s.name}, 16 sentences, {s.new_tokens} tokens"
    result = measure.compared(title, cases, rounds, of="ours, 4 beams", cpu_time=options.cpu_time)
    return {"as_marian": same, "cases": result}


if __name__ == "__main__":
    measure.each_setting("beam_search", __doc__, compare, small=20, base=3)
