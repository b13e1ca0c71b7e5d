# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
import unittest

from autodl.config import DEFAULT_ENDPOINT, load_settings, parse_toml
from autodl.errors import ConfigError


class Toml(unittest.TestCase):
    def test_what_login_writes_and_people_write(self):
        text = '''
# comment
endpoint = "http://h:1"   # behind
access_key = 'AK#1'
secret_key = "a \\"b\\" \\\\ \\u00fc"
number = 1_000
yes = true
[other]
endpoint = "not this"
'''
        found = parse_toml(text)
        self.assertEqual(found["endpoint"], "http://h:1")
        self.assertEqual(found["access_key"], "AK#1")
        self.assertEqual(found["secret_key"], 'a "b" \\ \u00fc')
        self.assertEqual((found["number"], found["yes"]), (1000, True))
        self.assertEqual(found["other.endpoint"], "not this")

    def test_the_file_agrees_with_python_s_own_reader(self):
        try:
            import tomllib
        except ImportError:
            return  # before Python 3.11 there is none to compare with
        text = 'a = "x\\t\\U0001F680" # c\nb = \'C:\\dir\'\nc = -5\nd = false\n'
        self.assertEqual(parse_toml(text), tomllib.loads(text))

    def test_broken_lines_are_named(self):
        for line in ('a', 'a =', 'a = "x', "a = 'x", 'a = "x" y', 'a = "\\q"', 'a = "\\u12"', '[a',
                     'a b = "x"', 'a = [1]', 'a = """x"""', 'ok = "1"\nok = "2"', 'a = "\\ud800"'):
            with self.subTest(line):
                with self.assertRaises(ValueError) as caught:
                    parse_toml(line)
                self.assertIn("line ", str(caught.exception))


class Sources(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environ = {"AUTODL_CONFIG": os.path.join(self.folder.name, "config.toml")}

    def write(self, text):
        with open(self.environ["AUTODL_CONFIG"], "w", encoding="utf-8") as out:
            out.write(text)

    def load(self, **given):
        return load_settings(environ=self.environ, **given)

    def test_arguments_then_environment_then_file(self):
        self.write('endpoint = "http://file:1"\naccess_key = "F"\nsecret_key = "f"\n')
        self.assertEqual(self.load()[:3], ("http://file:1", "F", "f"))
        self.environ.update(AUTODL_ACCESS_KEY="E", AUTODL_SECRET_KEY="e")
        self.assertEqual(self.load()[:3], ("http://file:1", "E", "e"))
        given = self.load(access_key="A", secret_key="a", endpoint="http://arg:1")
        self.assertEqual(given[:3], ("http://arg:1", "A", "a"))

    def test_keys_are_never_mixed_from_two_places(self):
        self.write('access_key = "F"\nsecret_key = "f"\n')
        self.environ["AUTODL_ACCESS_KEY"] = "E"
        with self.assertRaises(ConfigError) as caught:
            self.load()
        self.assertIn("secret key is missing", str(caught.exception))

    def test_token_and_default_endpoint(self):
        self.environ["AUTODL_TOKEN"] = "adl_t"
        settings = self.load()
        self.assertEqual((settings.endpoint, settings.token), (DEFAULT_ENDPOINT, "adl_t"))

    def test_no_keys_says_what_to_do(self):
        with self.assertRaises(ConfigError) as caught:
            self.load()
        self.assertIn("autodl login", str(caught.exception))

    def test_a_broken_file_is_named_with_its_line(self):
        self.write('endpoint = "http://h:1"\naccess_key =\n')
        with self.assertRaises(ConfigError) as caught:
            self.load()
        self.assertIn("line 2", str(caught.exception))
        self.assertIn("config.toml", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
