#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Packs layer tars into one image archive that `podman load` and `docker load` read.

pack.py OUTPUT REFERENCE LAYER.tar… [--env KEY=VALUE]… [--cmd JSON] [--label KEY=VALUE]…

The image's id is the digest of its configuration, which names the layers by theirs: the same layers and settings
give the same id on every host. The id is also written to OUTPUT.id.
"""
import argparse
import hashlib
import io
import json
import os
import tarfile


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            block = file.read(1 << 20)
            if not block:
                return digest.hexdigest()
            digest.update(block)


def add_bytes(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("reference")
    parser.add_argument("layers", nargs="+")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--cmd", type=json.loads, default=["/bin/sh"])
    parser.add_argument("--label", action="append", default=[])
    args = parser.parse_args()

    digests = [sha256_of(layer) for layer in args.layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Env": args.env,
            "Cmd": args.cmd,
            "WorkingDir": "/root",
            "Labels": dict(label.split("=", 1) for label in args.label),
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest for digest in digests]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "autodl"} for _ in digests],
    }
    config_bytes = json.dumps(config, sort_keys=True).encode()
    config_name = hashlib.sha256(config_bytes).hexdigest() + ".json"
    names = [digest + ".tar" for digest in digests]
    manifest = [{"Config": config_name, "RepoTags": [args.reference], "Layers": names}]

    temporary = args.output + ".part"
    with open(temporary, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for layer, name in dict(zip(args.layers, names)).items():
                archive.add(layer, arcname=name)
            add_bytes(archive, config_name, config_bytes)
            add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
    with open(args.output + ".id", "w") as file:
        file.write(config_name[: -len(".json")] + "\n")
    os.replace(temporary, args.output)


if __name__ == "__main__":
    main()
