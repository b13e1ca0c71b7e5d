# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A PEP 517 build backend for this one package: pure Python, nothing to download."""
import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "autodl_sdk"
SOURCES = ("build_backend.py", "pyproject.toml", "README.md")


def _version():
    with open(os.path.join(HERE, "autodl", "version.py"), encoding="utf-8") as source:
        return re.search(r'__version__ = "([^"]+)"', source.read()).group(1)


def _package_files():
    names = sorted(n for n in os.listdir(os.path.join(HERE, "autodl")) if n.endswith(".py"))
    return ["autodl/" + name for name in names]


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as readme:
        description = readme.read()
    return (
        "Metadata-Version: 2.1\nName: autodl-sdk\nVersion: %s\n"
        "Summary: Rent cards on an autodl server from Python: create, upload, run, download, bill\n"
        "License: Apache-2.0\nRequires-Python: >=3.7\n"
        "Description-Content-Type: text/markdown\n\n%s" % (_version(), description))


def _wheel_text():
    return "Wheel-Version: 1.0\nGenerator: autodl\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _info(name):
    # A fixed time makes the wheel's bytes depend on its contents alone.
    info = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    dist_info = "%s-%s.dist-info" % (NAME, _version())
    contents = []
    for name in _package_files():
        with open(os.path.join(HERE, name), "rb") as source:
            contents.append((name, source.read()))
    contents.append((dist_info + "/METADATA", _metadata().encode("utf-8")))
    contents.append((dist_info + "/WHEEL", _wheel_text().encode("utf-8")))
    record = ""
    for name, data in contents:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    record += dist_info + "/RECORD,,\n"
    contents.append((dist_info + "/RECORD", record.encode("utf-8")))
    wheel = "%s-%s-py3-none-any.whl" % (NAME, _version())
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for name, data in contents:
            archive.writestr(_info(name), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    base = "%s-%s" % (NAME, _version())
    sdist = base + ".tar.gz"
    with tarfile.open(os.path.join(sdist_directory, sdist), "w:gz") as archive:
        for name in list(SOURCES) + _package_files():
            archive.add(os.path.join(HERE, name), base + "/" + name)
        data = _metadata().encode("utf-8")
        info = tarfile.TarInfo(base + "/PKG-INFO")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return sdist
