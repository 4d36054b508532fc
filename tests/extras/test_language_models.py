"""Language models of `transformers`, small and with random weights, at one preference."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import Conditioning, condition
from paretocosmos.errors import ConfigurationError

transformers: Any = pytest.importorskip("transformers", reason="pip install --group extras")
WORDS, PAD = 48, 47
RAY = torch.tensor([0.7, 0.3])
ENDS = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": PAD}
KINDS = pytest.mark.parametrize("kind", ["gpt2", "llama"])


def _network(kind: str) -> Any:
    torch.manual_seed(1)
    if kind == "gpt2":
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 40}
        still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        config = transformers.GPT2Config(
            vocab_size=WORDS, **sizes, **still, **ENDS, initializer_range=0.3
        )
        return transformers.GPT2LMHeadModel(config).eval()
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(
        vocab_size=WORDS, **sizes, **ENDS, num_attention_heads=2, max_position_embeddings=40,
        initializer_range=0.3,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def _model(kind: str, how: str, **settings: Any) -> Conditioning:
    model = condition(_network(kind), 2, how=how, settings=settings).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in model.ray_parameters:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


IDS = torch.arange(18).view(2, 9) * 5 % PAD


def _greedy(model: Conditioning, ids: Tensor, count: int) -> Tensor:
    """The most likely words one by one, by whole calls without a cache."""
    for _ in range(count):
        outputs: Any = model({"input_ids": ids}, RAY)
        ids = torch.cat([ids, outputs["logits"][:, -1:].argmax(dim=-1)], dim=1)
    return ids


@KINDS
@pytest.mark.parametrize("how", ["lora", "film", "token", "hypernet"])
def test_it_generates_what_whole_calls_find_most_likely(kind: str, how: str) -> None:
    model = _model(kind, how)
    one: Any = model.at(RAY)
    wanted = _greedy(model, IDS, 6)
    for cached in (True, False):
        found = one.generate(IDS, max_new_tokens=6, do_sample=False, use_cache=cached)
        assert torch.equal(found, wanted)
    found = one.generate(input_ids=IDS, max_length=15, num_beams=2, return_dict_in_generate=True)
    assert torch.equal(found.sequences[:, :9], IDS)
    assert found.sequences.shape == (2, 15)
    assert one.config is model.backbone.config
    torch.testing.assert_close(one(IDS)["logits"], model({"input_ids": IDS}, RAY)["logits"])


@pytest.mark.parametrize(("objectives", "most"), [(2, 0.01)])
def test_lora_adds_less_than_a_hundredth_to_gpt2(objectives: int, most: float) -> None:
    with torch.device("meta"):
        network = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    model = condition(network, objectives, how="lora")
    own, every = (sum(p.numel() for p in part.parameters()) for part in (network, model))
    assert own == 124_439_808
    assert every - own == sum(p.numel() for p in model.parameters() if p.requires_grad)
    # in and out of c_attn, c_proj, c_fc and c_proj, times rank and objectives, in twelve blocks,
    # and the shares of eight components at two corners
    assert every - own == 12 * 4 * 2 * (768 + 2304 + 2 * 768 + 2 * (768 + 3072)) + 2 * 8
    assert every - own < most * own
    tokens = condition(network, objectives, how="token")
    assert sum(p.numel() for p in tokens.parameters()) - own < most * own


@KINDS
def test_merged_it_is_an_ordinary_checkpoint(kind: str, tmp_path: Path) -> None:
    model = _model(kind, "lora")
    wanted = model({"input_ids": IDS}, RAY)["logits"]
    merged = model.at(RAY, merge=True)
    assert type(merged) is type(model.backbone)
    torch.testing.assert_close(merged(IDS).logits, wanted, rtol=1e-5, atol=1e-5)
    one: Any = model.at(RAY)
    one.save_pretrained(tmp_path)
    read = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(read(IDS).logits, wanted, rtol=1e-5, atol=1e-5)
    unmergeable: Any = _model(kind, "film").at(RAY)
    with pytest.raises(ConfigurationError, match="the weights exactly"):
        unmergeable.save_pretrained(tmp_path / "film")


def test_layers_of_gpt2_that_are_named() -> None:
    model = condition(_network("gpt2"), 2, how="lora", layer=("c_attn", "lm_head"))
    assert model.places == (
        "transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_attn", "lm_head"
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="`lm_head` is shared"):
        model.at(RAY, merge=True)


def test_tokens_and_padding_on_the_left() -> None:
    """A shorter prompt beside a longer one, padded, goes on as it does alone."""
    model = _model("gpt2", "token", tokens=3)
    one: Any = model.at(RAY)
    alone = one.generate(IDS[:1, 4:], max_new_tokens=5, do_sample=False)
    padded = torch.cat([torch.full((1, 4), PAD), IDS[:1, 4:]], dim=1)
    mask = (torch.arange(9) >= 4).long().unsqueeze(0)
    both = one.generate(padded, attention_mask=mask, max_new_tokens=5, do_sample=False)
    assert torch.equal(both[:, 4:], alone)


def test_tokens_are_in_no_output_and_no_loss() -> None:
    model = _model("gpt2", "token", tokens=3)
    labels = IDS.clone()
    labels[:, 0] = -100  # which the last token would predict
    outputs: Any = model({"input_ids": IDS, "labels": labels, "output_hidden_states": True}, RAY)
    assert {hidden.shape[1] for hidden in outputs["hidden_states"]} == {9}
    wanted = nn.functional.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), IDS[:, 1:].flatten())
    torch.testing.assert_close(outputs.loss, wanted)
    one: Any = model.at(RAY)
    with pytest.raises(ConfigurationError, match=r"`model\.backbone\.resize_token_embeddings`"):
        one.resize_token_embeddings(9)
    with pytest.raises(ConfigurationError, match="`generate` takes a prompt"):
        one.generate(max_new_tokens=2)


def test_tokens_of_an_encoder_and_a_decoder_are_refused() -> None:
    sizes = {"d_model": 16, "d_ff": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8}
    network = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, vocab_size=9))
    with pytest.raises(ConfigurationError, match="an encoder and a decoder"):
        condition(network, 2, how="token")


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("kind", "how"), [("gpt2", "lora"), ("llama", "film"), ("gpt2", "token")])
def test_at_a_ray_it_compiles_and_exports(kind: str, how: str, tmp_path: Path) -> None:
    model = _model(kind, how)
    model.backbone.config.use_cache = False
    one: Any = model.at(RAY)
    wanted = one(IDS)["logits"].detach()
    with torch.no_grad():
        torch.compiler.reset()
        compiled: Any = torch.compile(one, backend="eager")
        torch.testing.assert_close(compiled(IDS)["logits"], wanted)
    if kind == "gpt2" and how == "lora":
        _exported(one, wanted, tmp_path / "model.onnx")


def _exported(one: nn.Module, wanted: Tensor, file: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = one

        def forward(self, ids: Tensor) -> Tensor:
            return self.one(input_ids=ids)["logits"]

    torch.onnx.export(Logits().eval(), (IDS,), file, dynamo=True, verbose=False)
    (found,) = runtime.InferenceSession(str(file)).run(None, {"ids": IDS.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-4, atol=1e-4)
