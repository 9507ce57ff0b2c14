"""Our model and its peers, of equal size, behind one interface.

Weights are random. One table serves both embeddings and the output.
"""

import math
from collections.abc import Callable, Collection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.settings import BOS_ID, EOS_ID, PAD_ID, Setting
from transformer.config import TransformerConfig
from transformer.decoding import greedy_decode
from transformer.model import Transformer
from transformer.positional import sinusoidal_encoding

RATE = 1e-4


class Peer(nn.Module):
    """A model with ``logits``, and in ``greedy`` the ways in which it can decode, by name."""

    greedy: dict[str, Callable[[Tensor, int], Tensor]]  # (src, number of tokens) → (B, tokens)

    def logits(self, src: Tensor, tgt: Tensor) -> Tensor:
        raise NotImplementedError

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Cross-entropy with label smoothing; ``tgt`` begins with bos."""
        logits = self.logits(src, tgt[:, :-1])
        labels = tgt[:, 1:].flatten()
        return F.cross_entropy(
            logits.flatten(0, 1), labels, ignore_index=PAD_ID, label_smoothing=0.1
        )


class Ours(Peer):
    def __init__(self, s: Setting):
        super().__init__()
        self.model = Transformer(
            TransformerConfig(
                s.vocab_size,
                s.vocab_size,
                d_model=s.d_model,
                n_heads=s.n_heads,
                n_encoder_layers=s.n_layers,
                n_decoder_layers=s.n_layers,
                d_ff=s.d_ff,
                dropout=s.dropout,
            )
        )
        nn.init.zeros_(self.model.output.weight[EOS_ID])  # a logit of 0: never the largest
        self.greedy = {"cache": self._greedy}

    def logits(self, src, tgt):
        return self.model(src, tgt)

    def _greedy(self, src, n):
        return greedy_decode(self.model, src, bos_id=BOS_ID, eos_id=EOS_ID, max_len=n)


class TorchTransformer(Peer):
    """torch.nn.Transformer with the embeddings and positions that it lacks."""

    positions: Tensor

    def __init__(self, s: Setting, *, dropout_as_ours: bool):
        super().__init__()
        self.embedding = nn.Embedding(s.vocab_size, s.d_model)
        nn.init.normal_(self.embedding.weight, std=s.d_model**-0.5)
        self.register_buffer("positions", sinusoidal_encoding(512, s.d_model))
        self.dropout = nn.Dropout(s.dropout)
        self.model = nn.Transformer(
            s.d_model, s.n_heads, s.n_layers, s.n_layers, s.d_ff, s.dropout, batch_first=True
        )
        if dropout_as_ours:
            for layer in self.model.modules():
                if isinstance(layer, nn.MultiheadAttention):
                    layer.dropout = 0.0
                if isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    layer.add_module("dropout", nn.Identity())  # inside the feed-forward network
        self.greedy = {"no cache": self._greedy}

    def logits(self, src, tgt):
        padding = src == PAD_ID
        memory = self._encode(src, padding)
        return self._output(self._decode(tgt, memory, padding))

    def _embed(self, tokens):
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: tokens.size(1)])

    def _encode(self, src, padding):
        return self.model.encoder(self._embed(src), src_key_padding_mask=padding)

    def _decode(self, tgt, memory, padding):
        T = tgt.size(1)
        return self.model.decoder(
            self._embed(tgt),
            memory,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(T, device=tgt.device),
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )

    def _output(self, x):
        return F.linear(x, self.embedding.weight)

    @torch.inference_mode()
    def _greedy(self, src, n):
        padding = src == PAD_ID
        memory = self._encode(src, padding)
        tokens = src.new_full((len(src), 1), BOS_ID)
        for _ in range(n):
            last = self._decode(tokens, memory, padding)[:, -1]
            tokens = torch.cat([tokens, self._output(last).argmax(-1, keepdim=True)], dim=1)
        return tokens[:, 1:]


class XTransformers(Peer):
    """XTransformer of x-transformers, put together by hand so that its output layer is tied."""

    def __init__(self, s: Setting, *, dropout_as_ours: bool):
        super().__init__()
        from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

        sublayer = "sublayer_" if dropout_as_ours else ""
        layers = {
            "dim": s.d_model,
            "depth": s.n_layers,
            "heads": s.n_heads,
            "attn_dim_head": s.d_model // s.n_heads,
            "ff_mult": s.d_ff / s.d_model,
            "attn_flash": True,
            f"attn_{sublayer}dropout": s.dropout,
            f"ff_{sublayer}dropout": s.dropout,
        }
        tokens = {"num_tokens": s.vocab_size, "max_seq_len": 512, "emb_dropout": s.dropout}
        self.encoder = TransformerWrapper(
            **tokens, attn_layers=Encoder(**layers), return_only_embed=True
        )
        decoder = TransformerWrapper(
            **tokens, attn_layers=Decoder(**layers, cross_attend=True), tie_embedding=True
        )
        decoder.token_emb = self.encoder.token_emb
        self.decoder = AutoregressiveWrapper(decoder, pad_value=PAD_ID)
        self.greedy = {"cache": self._greedy}

    def logits(self, src, tgt):
        mask = src != PAD_ID
        memory = self.encoder(src, mask=mask)
        return self.decoder.net(tgt, context=memory, context_mask=mask)

    @torch.inference_mode()
    def _greedy(self, src, n):
        mask = src != PAD_ID
        memory = self.encoder(src, mask=mask)
        starts = src.new_full((len(src), 1), BOS_ID)
        return self.decoder.generate(
            starts, n, temperature=0.0, context=memory, context_mask=mask, cache_kv=True
        )


class HuggingFace(Peer):
    """Marian or BART of Hugging Face's transformers, with the ReLU of the others.

    Their configurations have no dropout on attention weights, nor inside the feed-forward network.
    """

    def __init__(self, s: Setting, kind: str):
        super().__init__()
        import transformers

        config = getattr(transformers, f"{kind}Config")(
            vocab_size=s.vocab_size,
            d_model=s.d_model,
            max_position_embeddings=512,
            activation_function="relu",
            dropout=s.dropout,
            pad_token_id=PAD_ID,
            bos_token_id=BOS_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=BOS_ID,
            forced_eos_token_id=None,
            scale_embedding=True,
            init_std=s.d_model**-0.5,
            attn_implementation="sdpa",
            **{f"{side}_layers": s.n_layers for side in ("encoder", "decoder")},
            **{f"{side}_attention_heads": s.n_heads for side in ("encoder", "decoder")},
            **{f"{side}_ffn_dim": s.d_ff for side in ("encoder", "decoder")},
        )
        names = {"Marian": "MarianMTModel", "Bart": "BartForConditionalGeneration"}
        self.model = getattr(transformers, names[kind])(config)
        self.generation = transformers.GenerationConfig(
            do_sample=False,
            num_beams=1,
            pad_token_id=PAD_ID,
            decoder_start_token_id=BOS_ID,
            eos_token_id=None,
        )
        self.greedy = {"generate": self._generate, "loop": self._loop}

    def logits(self, src, tgt):
        mask = (src != PAD_ID).long()
        return self.model(
            input_ids=src, attention_mask=mask, decoder_input_ids=tgt, use_cache=False
        ).logits

    @torch.inference_mode()
    def _generate(self, src, n):
        mask = (src != PAD_ID).long()
        return self.model.generate(
            src, attention_mask=mask, generation_config=self.generation, max_new_tokens=n
        )[:, 1:]

    @torch.inference_mode()
    def _loop(self, src, n):
        """What generate does, and nothing besides."""
        mask = (src != PAD_ID).long()
        encoded = self.model.get_encoder()(input_ids=src, attention_mask=mask)
        token, past, tokens = src.new_full((len(src), 1), BOS_ID), None, []
        for _ in range(n):
            out = self.model(
                encoder_outputs=encoded,
                attention_mask=mask,
                decoder_input_ids=token,
                past_key_values=past,
                use_cache=True,
            )
            past = out.past_key_values
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(token)
        return torch.cat(tokens, dim=1)


def adam(model: nn.Module) -> torch.optim.Adam:
    """The optimizer that all are trained with."""
    return torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)


def build(
    s: Setting,
    device: torch.device,
    *,
    dropout_as_ours: bool = False,
    only: Collection[str] = (),
) -> dict[str, Peer]:
    """The models by name, or ``only`` some, but for those whose package is not installed.

    ``dropout_as_ours`` leaves a peer dropout only where the paper has it.
    """
    makers: dict[str, Callable[[], Peer]] = {
        "ours": lambda: Ours(s),
        "nn.Transformer": lambda: TorchTransformer(s, dropout_as_ours=dropout_as_ours),
        "x-transformers": lambda: XTransformers(s, dropout_as_ours=dropout_as_ours),
        "HF Marian": lambda: HuggingFace(s, "Marian"),
        "HF BART": lambda: HuggingFace(s, "Bart"),
    }
    models = {}
    for name in only or makers:
        torch.manual_seed(0)
        try:
            models[name] = makers[name]().to(device)
        except ImportError as error:
            print(f"without {name}: {error}")
    return models
