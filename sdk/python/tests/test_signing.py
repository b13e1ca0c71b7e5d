# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import json
import os
import unittest

from autodl import signing

VECTORS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "api", "vectors.json")


class Vectors(unittest.TestCase):
    def test_every_vector_of_the_api(self):
        with open(VECTORS, encoding="utf-8") as source:
            vectors = json.load(source)
        self.assertGreaterEqual(len(vectors), 4)
        for vector in vectors:
            with self.subTest(vector["name"]):
                digest = vector["content_sha256"]
                if digest != signing.UNSIGNED:
                    self.assertEqual(signing.content_hash(vector["body"].encode("utf-8")), digest)
                text = signing.string_to_sign(
                    vector["method"], vector["path"], vector["query"], digest,
                    vector["idempotency_key"], vector["time"], vector["nonce"])
                self.assertEqual(text, vector["string_to_sign"])
                self.assertEqual(signing.sign(vector["secret_key"], text), vector["signature"])
                self.assertEqual(signing.authorization(
                    vector["access_key"], vector["secret_key"], vector["method"], vector["path"],
                    vector["query"], digest, vector["idempotency_key"], vector["time"],
                    vector["nonce"]), vector["authorization"])

    def test_nonces_differ_and_have_the_form_that_is_asked_for(self):
        nonces = {signing.make_nonce() for _ in range(100)}
        self.assertEqual(len(nonces), 100)
        for nonce in nonces:
            self.assertRegex(nonce, "^[A-Za-z0-9_-]{16,64}$")


if __name__ == "__main__":
    unittest.main()
