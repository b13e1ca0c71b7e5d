# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""The signature of a request by access key (docs/api/contract.md, "Signing in")."""
import hashlib
import hmac
import secrets

SCHEME = "ADL1-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"


def content_hash(body):
    return hashlib.sha256(body).hexdigest()


def string_to_sign(method, path, query, content_sha256, idempotency_key, time_s, nonce):
    pairs = sorted(query.encode("utf-8").split(b"&")) if query else []
    return "\n".join([SCHEME, method, path, b"&".join(pairs).decode("utf-8"), content_sha256,
                      idempotency_key, "%d" % time_s, nonce])


def sign(secret_key, text):
    return hmac.new(secret_key.encode("utf-8"), text.encode("utf-8"), hashlib.sha256).hexdigest()


def make_nonce():
    return secrets.token_hex(16)


def authorization(access_key, secret_key, method, path, query, content_sha256, idempotency_key,
                  time_s, nonce):
    signature = sign(secret_key, string_to_sign(method, path, query, content_sha256,
                                                idempotency_key, time_s, nonce))
    return "%s key=%s, time=%d, nonce=%s, signature=%s" % (
        SCHEME, access_key, time_s, nonce, signature)
