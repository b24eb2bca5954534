"""attnlab's AdamW against torch's, which is the same without its decorators."""

import copy
import subprocess
import sys

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


@pytest.mark.parametrize("first", [AdamW, torch.optim.AdamW])
def test_each_hook_of_a_step_is_called_once(first):
    """torch wraps the step of a class at its first instance, and not again where it is wrapped already."""
    code = f"""
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
called = []
register_optimizer_step_post_hook(lambda *_: called.append("everywhere"))
weight = torch.nn.Parameter(torch.ones(2))
if {first is torch.optim.AdamW}:
    torch.optim.AdamW([weight])
from attnlab.training.optimizer import AdamW
optimizer = AdamW([weight])
optimizer.register_step_pre_hook(lambda *_: called.append("before"))
optimizer.register_step_post_hook(lambda *_: called.append("after"))
optimizer.step()
print(called)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "['before', 'after', 'everywhere']\n"


def test_no_method_imports_the_compiler():
    code = """
import sys, torch
from attnlab.training.optimizer import AdamW
weight = torch.nn.Parameter(torch.ones(2))
optimizer = AdamW([weight], fused=True)
optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))]})
weight.sum().backward()
optimizer.step()
optimizer.zero_grad(set_to_none=True)
optimizer.load_state_dict(optimizer.state_dict())
print("torch._dynamo" in sys.modules)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "False\n"


def test_gradients_are_as_before_after_a_step_that_fails():
    model, optimizer = one(AdamW)
    model.weight.grad = torch.zeros(8, 8)
    optimizer.param_groups[0]["betas"] = None
    with pytest.raises(TypeError):
        optimizer.step()
    assert torch.is_grad_enabled()


def test_a_differentiable_one_is_refused():
    with pytest.raises(ValueError, match="differentiable=True"):
        one(AdamW, SETTINGS | {"fused": False, "differentiable": True})


def test_an_overflow_of_fp16_leaves_the_weights():
    model, optimizer = one(AdamW)
    before = model.weight.detach().clone()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for gradient, moved in ((torch.inf, False), (1.0, True)):
        optimizer.zero_grad(set_to_none=True)
        scaler.scale((model.weight * gradient).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(model.weight, before) is not moved
