"""From whatever a user has to a `Subject`."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attnlab.errors import UserError
from attnlab.model.attention import MultiHeadAttention
from attnlab.theory.detectors.blocks import hugging_face_block, our_block, torch_block
from attnlab.theory.detectors.functions import MASK_NAMES, MaskStyle, as_seen, function, required, with_mask
from attnlab.theory.detectors.subject import Subject, both, name_of


def subject_of(
    thing: Any, *, mask: MaskStyle, hides_future: bool, positions: bool, heads: int | None, width: int | None,
    dtype: torch.dtype,
) -> Subject:  # fmt: skip
    """The subject behind `thing`; see `detect` for the arguments. Raises UserError where it cannot tell."""
    match thing:
        case Subject():
            return thing
        case MultiHeadAttention():
            return our_block(thing)
        case nn.MultiheadAttention():
            return torch_block(thing)
        case nn.Module() if all(hasattr(thing, part) for part in ("q_proj", "k_proj", "v_proj", "out_proj")):
            return hugging_face_block(thing)
    if not callable(thing):
        raise UserError(f"check: got {type(thing).__name__}, allowed: an attention module or function")
    named = thing.forward if isinstance(thing, nn.Module) else thing
    try:
        parameters = inspect.signature(named).parameters
    except ValueError:  # compiled functions have no signature
        raise UserError(
            f"check: got {name_of(thing)}, whose arguments cannot be read, allowed: a function around it, such as "
            "lambda q, k, v, mask: f(q, k, v, attn_mask=mask)"
        ) from None
    call = copy.deepcopy(thing).to(dtype).eval() if isinstance(thing, nn.Module) else thing
    masked = with_mask(call, parameters, mask, dtype)
    inputs = sum(1 for name in parameters if name not in MASK_NAMES and required(parameters[name]))
    takes_mask = mask is not MaskStyle.none and any(name in parameters for name in MASK_NAMES)
    if inputs in (1, 3) and width is not None:
        return Subject(
            name_of(thing), width, lambda x, keep, real: as_seen(masked((x,) * inputs, both(keep, real))),
            takes_keep=takes_mask, takes_real=takes_mask, hides_future=hides_future, positions=positions, heads=heads,
            dtype=dtype,
        )  # fmt: skip
    if inputs == 3:
        subject = function(name_of(thing), masked, takes_mask, dtype)
        return replace(subject, hides_future=hides_future, positions=positions)
    raise UserError(
        f"check: got {name_of(thing)}({', '.join(parameters)}), allowed: (q, k, v[, mask]) on ready heads, or, together "
        "with width, (x[, mask]) or (query, key, value[, mask]) on tokens"
    )
