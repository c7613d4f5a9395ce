"""A step of SGHMC on a network in plain PyTorch. It reads the network's sites, its parameters and a batch from a
folder and writes its log posterior and gradient there. Then each line of input is a number of steps; the answer is the
seconds of one."""
import array
import json
import math
import sys
import time

import torch
import torch.nn.functional as F

folder, device = sys.argv[1], torch.device(sys.argv[2])
with open(f"{folder}/network.json") as f:
    net = json.load(f)


def read(name, dtype, shape):
    with open(f"{folder}/{name}", "rb") as f:
        return torch.frombuffer(bytearray(f.read()), dtype=torch.float64).to(dtype).reshape(shape).to(device)


y = read("y", torch.int64, [-1])
x = read("x", torch.int64 if net["network"] == "cnnlstm" else torch.float32, net["x"])
theta = read("theta", torch.float32, [-1])
sizes = [math.prod(s["shape"]) for s in net["sites"]]


def cnnlstm(p):
    h = F.embedding(x, p["1_embedding.weight"]).transpose(1, 2)
    h = F.max_pool1d(F.conv1d(h, p["2_conv.weight"], p["2_conv.bias"]).relu(), 4).transpose(1, 2)
    bias, recurrent = p["3_lstm.bias_ih"], p["3_lstm.weight_hh"]
    start = torch.zeros(1, len(x), recurrent.shape[1], device=device)
    weights = [p["3_lstm.weight_ih"], recurrent, bias, torch.zeros_like(bias)]
    _, last, _ = torch.lstm(h, (start, start), weights, True, 1, 0.0, True, False, True)
    return F.linear(last[0], p["4_output.weight"], p["4_output.bias"])


def resnet(p):
    def conv(name, h, stride, padding):
        return F.conv2d(h, p[name + ".weight"], p[name + ".bias"], stride, padding)

    def norm(name, h):
        return F.batch_norm(h, None, None, p[name + ".scale"], p[name + ".bias"], training=True)

    h = norm("stem.1", conv("stem.0", x, 1, 1)).relu()
    for stage in (1, 2, 3):
        for block in (1, 2, 3):
            name = f"stage_{stage}_block_{block}.0."
            stride = 2 if stage > 1 and block == 1 else 1
            body = norm(name + "body.1", conv(name + "body.0", h, stride, 1)).relu()
            body = norm(name + "body.4", conv(name + "body.3", body, 1, 1))
            h = (body + (conv(name + "shortcut.0", h, stride, 0) if stride > 1 else h)).relu()
    return F.linear(h.mean((2, 3)), p["output.weight"], p["output.bias"])


logits = {"cnnlstm": cnnlstm, "resnet": resnet}[net["network"]]


def value_and_grad(flat):
    """The log posterior as a mean over the data, with the prior N(0, 1), and its gradient."""
    leaf = flat.detach().requires_grad_()
    parts = leaf.split(sizes)
    p = {s["name"]: v.view(s["shape"]) for s, v in zip(net["sites"], parts)}
    prior = -0.5 * leaf.square().sum() - 0.5 * math.log(2 * math.pi) * leaf.numel()
    value = prior / net["data"] - F.cross_entropy(logits(p), y)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


momenta = torch.zeros_like(theta)
rate, alpha = net["rate"], net["alpha"]
scale = math.sqrt(2 * rate * alpha / net["data"])


def step():
    grad = value_and_grad(theta)[1]
    theta.add_(momenta, alpha=rate)
    momenta.mul_(1 - rate * alpha).add_(grad, alpha=rate).add_(torch.randn_like(momenta), alpha=scale)


def wait():
    if device.type == "cuda":
        torch.cuda.synchronize()


value, grad = value_and_grad(theta)
with open(f"{folder}/answer", "wb") as f:
    array.array("d", [value.item()] + grad.double().tolist()).tofile(f)
print(json.dumps({"version": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
for line in sys.stdin:
    n = int(line)
    wait()
    start = time.perf_counter()
    for _ in range(n):
        step()
        wait()
    print(json.dumps({"seconds": (time.perf_counter() - start) / n}), flush=True)
