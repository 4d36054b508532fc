"""Networks of the `transformers` package, tiny and with random weights."""

from typing import Any

import pytest
import torch
from tests.networks._entry import STEPS, Built, Made, numbers, tokens

__all__ = ["TRANSFORMERS"]

WORDS = 40


def _package() -> Any:
    return pytest.importorskip("transformers", reason="pip install --group extras")


def _text() -> dict[str, torch.Tensor]:
    words = tokens(WORDS, STEPS)
    return {"input_ids": words, "attention_mask": torch.ones_like(words)}


def _gpt2() -> Built:
    t = _package()
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 12, "vocab_size": WORDS}
    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
    return t.GPT2LMHeadModel(t.GPT2Config(**sizes, **quiet)), _text()


def _bert() -> Built:
    t = _package()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = t.BertConfig(
        vocab_size=WORDS,
        intermediate_size=24,
        max_position_embeddings=12,
        num_labels=3,
        **sizes,
        **quiet,
    )
    return t.BertForSequenceClassification(config), _text()


def _llama() -> Built:
    t = _package()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = t.LlamaConfig(
        vocab_size=WORDS,
        intermediate_size=24,
        max_position_embeddings=12,
        num_key_value_heads=1,
        use_cache=False,
        **sizes,
    )
    return t.LlamaForCausalLM(config), _text()


def _t5() -> Built:
    t = _package()
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    config = t.T5Config(vocab_size=WORDS, dropout_rate=0.0, use_cache=False, **sizes)
    answers = tokens(WORDS, 4)
    inputs = {**_text(), "decoder_input_ids": answers}
    return t.T5ForConditionalGeneration(config), inputs


def _wav2vec2() -> Built:
    t = _package()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = t.Wav2Vec2Config(
        vocab_size=12,
        intermediate_size=24,
        conv_dim=(8, 8),
        conv_kernel=(10, 4),
        conv_stride=(5, 4),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        feat_proj_dropout=0.0,
        final_dropout=0.0,
        layerdrop=0.0,
        mask_time_prob=0.0,
        **sizes,
    )
    return t.Wav2Vec2ForCTC(config), {"input_values": numbers(200)}


TRANSFORMERS: dict[str, Made] = {
    "GPT-2": _gpt2,
    "BERT": _bert,
    "Llama": _llama,
    "T5": _t5,
    "wav2vec 2.0": _wav2vec2,
}
