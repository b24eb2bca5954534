"""attnlab's AdamW against torch's, which is the same without its decorators."""

import copy

import pytest
import torch

from attnlab.training.optimizer import AdamW

SETTINGS = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.1, "fused": True}


def one(kind, settings=SETTINGS):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    return model, kind(model.parameters(), **settings)


def train(model, optimizer, steps=3):
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(4, 8, generator=generator)).square().sum().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("fused", [True, False])
def test_weights_and_moments_are_those_of_torch(fused):
    models = [one(kind, SETTINGS | {"fused": fused}) for kind in (AdamW, torch.optim.AdamW)]
    ours, theirs = (train(*each) for each in models)
    assert all(map(torch.equal, ours, theirs))
    assert not torch.equal(ours[0], one(AdamW)[0].weight)
    kept, wanted = (optimizer.state_dict() for _, optimizer in models)
    assert kept["param_groups"] == wanted["param_groups"]
    for index, moments in wanted["state"].items():
        assert kept["state"][index].keys() == moments.keys()
        assert all(torch.equal(kept["state"][index][name], value) for name, value in moments.items())


def test_a_state_of_torch_goes_on_in_ours():
    model, optimizer = one(torch.optim.AdamW)
    train(model, optimizer)
    again, ours = one(AdamW)
    again.load_state_dict(copy.deepcopy(model.state_dict()))
    ours.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert all(map(torch.equal, train(again, ours), train(model, optimizer)))


def test_hooks_of_a_step_are_called():
    _, optimizer = one(AdamW)
    called = []
    optimizer.register_step_post_hook(lambda *_: called.append(1))
    optimizer.step()
    assert called == [1]
