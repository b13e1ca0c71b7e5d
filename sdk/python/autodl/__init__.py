# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Rent cards on an autodl server: create, upload, run, watch, download, pay for the seconds.

    client = autodl.Client()
    task = client.create_task(name="mnist", image="pytorch/pytorch:1.12-cuda11.6",
                              command="python train.py", gpu_type="RTX 3090")

Inside an instance, `autodl.Monitor()` tells how busy its cards are.
"""
import os as _os
import sys as _sys

# Where every instance has this package; on PYTHONPATH, hence before site-packages.
_BUNDLED = "/opt/autodl/lib/python"


def _yield_to_another():
    """Loads another `autodl` in this one's place: true where there is one.

    Inside an instance the platform's copy is found before what the user installed with pip. Theirs
    comes first all the same: so this copy looks further down the path and steps aside.
    """
    mine = _os.path.realpath(_os.path.dirname(_os.path.dirname(_os.path.abspath(__file__))))
    if mine != _os.path.realpath(_BUNDLED):
        return False
    import importlib.machinery
    import importlib.util
    others = [p for p in _sys.path if _os.path.realpath(p or _os.getcwd()) != mine]
    spec = importlib.machinery.PathFinder.find_spec(__name__, others)
    # A plain folder named `autodl` is a namespace package, not somebody's distribution.
    if spec is None or spec.loader is None or not spec.origin or not _os.path.isfile(spec.origin):
        return False
    module = importlib.util.module_from_spec(spec)
    _sys.modules[__name__] = module
    spec.loader.exec_module(module)
    return True


if not _yield_to_another():
    from .client import Client
    from .errors import (AuthenticationError, AutodlError, BalanceTooLowError, ConfigError,
                         ConflictError, InvalidRequestError, LimitError, LocalFileError,
                         NotFoundError, PermissionDeniedError, ServerError, TransferError,
                         UnavailableError, UnsupportedError, WaitTimeoutError)
    from .monitor import Monitor
    from .records import LogEntry, Record
    from .task import Task
    from .version import __version__

    __all__ = [
        "AuthenticationError", "AutodlError", "BalanceTooLowError", "Client", "ConfigError",
        "ConflictError", "InvalidRequestError", "LimitError", "LocalFileError", "LogEntry",
        "Monitor", "NotFoundError", "PermissionDeniedError", "Record", "ServerError", "Task",
        "TransferError", "UnavailableError", "UnsupportedError", "WaitTimeoutError", "__version__"]
