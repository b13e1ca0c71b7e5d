# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A small convolutional net for grey pictures of 28 x 28 (or 8 x 8, padded) and ten classes."""
from torch import nn


class Net(nn.Module):
    """(N, 1, 28, 28) floats -> (N, 10) logits; about 100,000 parameters."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, classes))

    def forward(self, pictures):
        return self.classifier(self.features(pictures))
