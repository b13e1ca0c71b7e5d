#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional net on photographs of clothes (Fashion-MNIST).

    python train.py --data=/root/data --output=/root/output

Reads the four IDX files (.gz or not) from --data; where it holds none, the copy of Debian's package
dataset-fashion-mnist. --quick takes scikit-learn's handwritten digits instead: seconds, not minutes.
Writes to --output: checkpoint.pt after each epoch (--resume goes on from it), model.pt, metrics.json,
history.csv and curve.svg.
"""
import argparse
import gzip
import json
import os
import struct
import sys
import time

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from model import Net

SYSTEM_DATA = "/usr/share/datasets/fashion-mnist"
FILES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}


def find(folder, name):
    """The path of an IDX file or of its .gz, or None."""
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.isfile(path):
            return path
    return None


def read_idx(path):
    """An IDX file of unsigned bytes as an array; ValueError names what is wrong with it."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as source:
        data = source.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError("%s: not an IDX file of bytes" % path)
    dimensions = data[3]
    shape = struct.unpack(">%dI" % dimensions, data[4:4 + 4 * dimensions])
    array = numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * dimensions)
    if array.size != numpy.prod(shape):
        raise ValueError("%s: holds %d bytes instead of %s" % (path, array.size, shape))
    return array.reshape(shape)


def photographs(folder):
    """((train pictures, labels), (test pictures, labels)) as tensors, pictures in 0...1."""
    complete = all(find(folder, name) for pair in FILES.values() for name in pair)
    if not complete:
        print("no data set in %s: taking %s" % (folder, SYSTEM_DATA))
        folder = SYSTEM_DATA
    parts = []
    for names in FILES.values():
        paths = [find(folder, name) for name in names]
        if None in paths:
            sys.exit("no Fashion-MNIST in %s: put its four IDX files there, or install "
                     "dataset-fashion-mnist" % folder)
        pictures, labels = (read_idx(path) for path in paths)
        parts.append((torch.tensor(pictures).unsqueeze(1).float() / 255, torch.tensor(labels).long()))
    return parts


def digits():
    """scikit-learn's 1,797 digits, 8 x 8, enlarged and padded to 28 x 28; every fifth is for the test."""
    from sklearn.datasets import load_digits
    raw = load_digits()
    pictures = torch.tensor(raw.images).float().unsqueeze(1) / 16
    pictures = nn.functional.pad(nn.functional.interpolate(pictures, scale_factor=3), (2, 2, 2, 2))
    labels = torch.tensor(raw.target).long()
    test = torch.arange(len(labels)) % 5 == 0
    return (pictures[~test], labels[~test]), (pictures[test], labels[test])


def save_atomically(state, path):
    """A reader (or a resumed run) sees the old file or the new one, never half of one."""
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def write_text(text, path):
    with open(path + ".new", "w") as out:
        out.write(text)
    os.replace(path + ".new", path)


def accuracy(net, pictures, labels, device):
    net.eval()
    right = 0
    with torch.no_grad():
        for batch, truth in zip(pictures.split(1000), labels.split(1000)):
            right += (net(batch.to(device)).argmax(1).cpu() == truth).sum().item()
    return right / len(labels)


def curve(history):
    """Test accuracy by epoch as an SVG picture."""
    width, height, left, bottom = 480, 300, 50, 40
    lowest = min(0.8, min(row["test_accuracy"] for row in history))
    span = max(1, len(history) - 1)

    def place(index, value):
        return (left + index * (width - left - 20) / span,
                height - bottom - (value - lowest) / (1 - lowest) * (height - bottom - 20))

    points = " ".join("%.1f,%.1f" % place(i, row["test_accuracy"]) for i, row in enumerate(history))
    marks = "".join(
        '<text x="4" y="%.1f">%.0f %%</text><line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>'
        % (place(0, v)[1] + 4, 100 * v, left, place(0, v)[1], width - 20, place(0, v)[1])
        for v in (lowest + (1 - lowest) * k / 4 for k in range(5)))
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
            'font-size="12">%s<polyline points="%s" fill="none" stroke="#0969da" stroke-width="2"/>'
            '<text x="%d" y="%d">epoch (1 to %d)</text><text x="%d" y="14">test accuracy</text></svg>\n'
            % (width, height, marks, points, width // 2 - 40, height - 10, len(history), left))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/root/data", help="folder of the IDX files")
    parser.add_argument("--output", default="/root/output", help="folder of the results")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, help="default 4; 15 with --quick")
    parser.add_argument("--resume", action="store_true", help="go on from OUTPUT/checkpoint.pt")
    parser.add_argument("--quick", action="store_true", help="small digits: seconds")
    arguments = parser.parse_args()
    if arguments.epochs is None:
        arguments.epochs = 15 if arguments.quick else 4
    if arguments.batch_size < 1 or arguments.epochs < 1:
        parser.error("--batch-size and --epochs are at least 1")
    return arguments


def train_epoch(net, loader, optimizer, schedule, device):
    net.train()
    total = 0.0
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(pictures.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


def main():
    arguments = parse_arguments()
    torch.manual_seed(1)
    if arguments.quick:
        torch.set_num_threads(1)  # so small that threads would mostly wait for each other
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("PyTorch %s on %s" % (torch.__version__, device))
    os.makedirs(arguments.output, exist_ok=True)
    (train, train_labels), (test, test_labels) = digits() if arguments.quick else photographs(arguments.data)
    print("%d pictures to train on, %d to test on" % (len(train_labels), len(test_labels)))
    loader = DataLoader(TensorDataset(train, train_labels), arguments.batch_size, shuffle=True)
    net = Net().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, arguments.epochs * len(loader))
    checkpoint = os.path.join(arguments.output, "checkpoint.pt")
    history = []
    if arguments.resume and os.path.exists(checkpoint):
        state = torch.load(checkpoint, map_location=device)
        if state["epochs"] != arguments.epochs or state["quick"] != arguments.quick:
            sys.exit("--resume: %s was made with other --epochs or --quick" % checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        history = state["history"]
        print("resumed after epoch %d" % len(history))
    begun = time.monotonic()
    for epoch in range(len(history) + 1, arguments.epochs + 1):
        loss = train_epoch(net, loader, optimizer, schedule, device)
        history.append({"epoch": epoch, "loss": loss,
                        "test_accuracy": accuracy(net, test, test_labels, device)})
        print("epoch %d/%d: loss %.4f, test accuracy %.2f %%, %.0f s"
              % (epoch, arguments.epochs, loss, 100 * history[-1]["test_accuracy"],
                 time.monotonic() - begun))
        save_atomically({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                         "schedule": schedule.state_dict(), "history": history,
                         "epochs": arguments.epochs, "quick": arguments.quick}, checkpoint)
    save_atomically(net.state_dict(), os.path.join(arguments.output, "model.pt"))
    write_text("epoch,loss,test_accuracy\n" + "".join(
        "%d,%.6f,%.6f\n" % (row["epoch"], row["loss"], row["test_accuracy"]) for row in history),
               os.path.join(arguments.output, "history.csv"))
    write_text(curve(history), os.path.join(arguments.output, "curve.svg"))
    write_text(json.dumps({"test_accuracy": history[-1]["test_accuracy"], "epochs": arguments.epochs,
                           "seconds": round(time.monotonic() - begun, 1), "device": str(device),
                           "data": "digits" if arguments.quick else "fashion-mnist"}, indent=1) + "\n",
               os.path.join(arguments.output, "metrics.json"))
    print("test accuracy %.2f %%" % (100 * history[-1]["test_accuracy"]))


if __name__ == "__main__":
    main()
