"""torch's AdamW without the start of torch's compiler."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch


class AdamW(torch.optim.AdamW):
    """AdamW (Loshchilov and Hutter 2019) by torch's own methods, without the decorators around them.

    Those are for torch.compile, which nothing here uses, and import it at the first call: more than a second of each
    process (docs/performance.md). `step` runs without gradients, as torch's does unless `differentiable`, which raises
    ValueError here. A decorator that a later torch adds is left off as well, so that the tests hold weights, moments and
    hooks to torch's own.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if self.defaults["differentiable"]:
            raise ValueError("differentiable=True: got an optimiser whose step keeps no gradients")

    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = unwrap(torch.optim.AdamW.state_dict)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
