"""Views of a Marian model of `transformers`: the page's released one, or any other of its shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnlab.config import Site
from attnlab.data.hub import REACH_SECONDS, reaches
from attnlab.errors import UserError
from attnlab.model.attention import MultiHeadAttention
from attnlab.model.masks import causal
from attnlab.theory.factors import CORRECT
from attnlab.theory.page.printed import SOURCE_SENTENCE
from attnlab.theory.page.views import Block, Views

if TYPE_CHECKING:
    from transformers import MarianMTModel, MarianTokenizer

RELEASED = "Helsinki-NLP/opus-mt-en-de"
SOURCE_TOKENS, TARGET_TOKENS = 12, 14  # lengths of the page's texts, where a model comes without a tokenizer


def views_of_released(path: str) -> Views:
    """Load a Marian model and its tokenizer from a folder or the Hub, and look at the page's sentence.

    Raises UserError where `transformers` is missing or the model cannot be had. A folder without a tokenizer is
    looked at with random tokens of the page's lengths, as new numbers.
    """
    model, tokenizer = load(path)
    eos = model.config.eos_token_id
    if tokenizer is None:
        return views_of_marian(model, *random_tokens(model.config.vocab_size, eos))
    src = tokenizer(SOURCE_SENTENCE, return_tensors="pt").input_ids
    with torch.no_grad():
        generated = model.generate(src, num_beams=1, do_sample=False, max_new_tokens=2 * src.shape[1] + 10)
    ended = generated[0, -1].item() == eos
    return views_of_marian(model, src, generated[:, :-1] if ended else generated, tokenizer)


def load(path: str) -> tuple[Any, MarianTokenizer | None]:
    """The model with explicit attention weights, in eval mode, and its tokenizer where it has one."""
    try:
        from huggingface_hub.constants import ENDPOINT
        from transformers import MarianMTModel, MarianTokenizer
    except ImportError:
        raise UserError(
            f"released: got '{path}' without the library transformers, allowed: after pip install 'attnlab[released]'"
        ) from None
    # an unreachable Hub is noticed here in 2 seconds; its client would try for half a minute
    cache_only = Path(path).is_dir() or not reaches(ENDPOINT, REACH_SECONDS)
    try:
        model = MarianMTModel.from_pretrained(
            path, attn_implementation="eager", local_files_only=cache_only
        ).eval()
    except (OSError, ValueError) as error:
        why = "no Hub in reach" if cache_only and not Path(path).is_dir() else type(error).__name__
        raise UserError(
            f"released: got '{path}', which cannot be loaded ({why}), allowed: a folder with a saved MarianMTModel, "
            f"or a Hub id such as {RELEASED} while the Hub can be reached or its cache holds the model"
        ) from None
    try:
        return model, MarianTokenizer.from_pretrained(path, local_files_only=cache_only)
    except (OSError, TypeError, ValueError):  # the library's three ways to say that a file is missing
        if not Path(path).is_dir():
            raise UserError(
                f"released: got '{path}', whose tokenizer cannot be loaded, allowed: a Hub id with all its files"
            ) from None
        return model, None


def random_tokens(vocab_size: int, eos: int) -> tuple[Tensor, Tensor]:
    """Source [1,12] ending in `eos` and decoder input [1,14], of the page's lengths."""
    generator = torch.Generator().manual_seed(0)
    src, tgt = (
        torch.randint(1, vocab_size - 1, (1, n), generator=generator) for n in (SOURCE_TOKENS, TARGET_TOKENS)
    )
    src[0, -1] = eos
    return src, tgt


@torch.no_grad()
def views_of_marian(
    model: MarianMTModel, src: Tensor, tgt: Tensor, tokenizer: MarianTokenizer | None = None
) -> Views:
    """Run src [1,S] and decoder input tgt [1,T] once, catching input and output of the three blocks of layer 1."""
    encoder, decoder = model.model.encoder.layers, model.model.decoder.layers
    library = {
        Site.encoder: encoder[0].self_attn,
        Site.decoder: decoder[0].self_attn,
        Site.cross: decoder[0].encoder_attn,
    }
    caught: dict[Site, tuple[Tensor, Tensor, Tensor]] = {}
    hooks = [
        block.register_forward_hook(_catch(caught, site), with_kwargs=True) for site, block in library.items()
    ]
    try:
        out = model(src, decoder_input_ids=tgt, output_attentions=True, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    keep = {Site.encoder: None, Site.decoder: causal(tgt.shape[1]), Site.cross: None}
    blocks = {}
    for site, (x_q, x_kv, y) in caught.items():
        blocks[site] = Block(our_block(library[site]), x_q, x_kv, keep[site], y)
    weights = {
        Site.encoder: list(out.encoder_attentions), Site.decoder: list(out.decoder_attentions),
        Site.cross: list(out.cross_attentions),
    }  # fmt: skip
    layers = (len(encoder), len(decoder))
    if tokenizer is None:
        return Views(False, layers, blocks, weights, None, None, None, missing="no tokenizer")
    source, target = (tokenizer.convert_ids_to_tokens(ids[0].tolist()) for ids in (src, tgt))
    translation = tokenizer.decode(tgt[0], skip_special_tokens=True)
    return Views(True, layers, blocks, weights, source, target, translation)


def _catch(caught: dict[Site, tuple[Tensor, Tensor, Tensor]], site: Site) -> Callable[..., None]:
    def hook(block: nn.Module, args: tuple, kwargs: dict, output: tuple) -> None:
        x_q = args[0] if args else kwargs["hidden_states"]
        caught[site] = (x_q, kwargs["key_value_states"] if site is Site.cross else x_q, output[0])

    return hook


def our_block(library: Any) -> MultiHeadAttention:
    """Our block with the weights of one of Marian's; both keep them in nn.Linear, (out, in)."""
    width, heads = library.embed_dim, library.num_heads
    with torch.random.fork_rng(devices=[]):
        ours = MultiHeadAttention(width, heads, width // heads, width // heads, CORRECT)
    for part, theirs in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj"), ("w_o", "out_proj")):
        getattr(ours, part).load_state_dict(getattr(library, theirs).state_dict())
    return ours.to(library.q_proj.weight).requires_grad_(False)
