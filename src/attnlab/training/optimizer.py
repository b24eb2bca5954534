"""torch's AdamW without the start of torch's compiler."""

from __future__ import annotations

from inspect import unwrap

import torch


class AdamW(torch.optim.AdamW):
    """The same methods as torch wrote them (Loshchilov and Hutter 2019, fused), without the decorators around them.

    Those keep torch.compile out of an optimiser, which nothing here compiles, and import it to do so: 1.2 s of each
    process, a quarter of the time to a first step (docs/performance.md).
    """

    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    load_state_dict = unwrap(torch.optim.AdamW.load_state_dict)
    state_dict = unwrap(torch.optim.AdamW.state_dict)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
