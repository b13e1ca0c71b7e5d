# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import ast
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SDK = os.path.dirname(HERE)
PACKAGE = os.path.join(SDK, "autodl")


def sources():
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as source:
                yield name, source.read()


def run_python(*argv, **env):
    return subprocess.run([sys.executable] + list(argv), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True,
                          env=dict(os.environ, PYTHONPATH="", **env))


class Source(unittest.TestCase):
    def test_it_is_python_3_7_of_the_standard_library(self):
        standard = set(getattr(sys, "stdlib_module_names", ()))
        for name, text in sources():
            with self.subTest(name):
                keywords = {"feature_version": (3, 7)} if sys.version_info >= (3, 8) else {}
                tree = ast.parse(text, name, **keywords)
                for node in ast.walk(tree):
                    modules = []
                    if isinstance(node, ast.Import):
                        modules = [alias.name for alias in node.names]
                    elif isinstance(node, ast.ImportFrom) and node.level == 0:
                        modules = [node.module]
                    if standard:
                        self.assertLessEqual({m.split(".")[0] for m in modules}, standard)

    def test_what_is_exported_is_documented(self):
        import autodl
        for name in autodl.__all__:
            if name != "__version__":
                self.assertTrue((getattr(autodl, name).__doc__ or "").strip(), name)


class InsideAnInstance(unittest.TestCase):
    """The platform's copy lies on PYTHONPATH, before what the user installed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundled = os.path.join(folder.name, "bundled")
        self.other = os.path.join(folder.name, "site")
        os.makedirs(os.path.join(self.bundled, "autodl"))
        for name, text in sources():
            # The folder of the toolbox, for this test.
            text = text.replace('"/opt/autodl/lib/python"', repr(self.bundled))
            with open(os.path.join(self.bundled, "autodl", name), "w", encoding="utf-8") as out:
                out.write(text)

    def ask(self, code):
        done = run_python("-c", "import sys; sys.path[1:1] = [%r, %r]; %s"
                          % (self.bundled, self.other, code))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.strip()

    def add_other(self, **files):
        os.makedirs(os.path.join(self.other, "autodl"))
        for name, text in files.items():
            with open(os.path.join(self.other, "autodl", name + ".py"), "w") as out:
                out.write(text)

    def test_alone_it_is_the_one(self):
        self.assertEqual(self.ask("import autodl; print(autodl.Monitor.__name__)"), "Monitor")

    def test_it_yields_to_another_with_its_submodules(self):
        self.add_other(__init__="WHO = 'theirs'", part="VALUE = 5")
        found = self.ask("import autodl, autodl.part; "
                         "print(autodl.WHO, autodl.part.VALUE, hasattr(autodl, 'Client'))")
        self.assertEqual(found, "theirs 5 False")
        self.assertEqual(self.ask("from autodl.part import VALUE; print(VALUE)"), "5")

    def test_a_plain_folder_of_that_name_is_not_another(self):
        self.add_other()
        self.assertEqual(self.ask("import autodl; print(autodl.Monitor.__name__)"), "Monitor")

    def test_another_that_fails_to_load_says_so_itself(self):
        self.add_other(__init__="raise RuntimeError('theirs is broken')")
        self.assertEqual(self.ask("\ntry:\n import autodl\nexcept RuntimeError as e:\n print(e)"),
                         "theirs is broken")


class Wheel(unittest.TestCase):
    def test_the_backend_makes_a_wheel_that_imports(self):
        sys.path.insert(0, SDK)
        try:
            import build_backend
        finally:
            sys.path.remove(SDK)
        with tempfile.TemporaryDirectory() as folder:
            wheel = os.path.join(folder, build_backend.build_wheel(folder))
            again = tempfile.mkdtemp(dir=folder)
            self.assertEqual(build_backend.build_wheel(again), os.path.basename(wheel))
            with open(wheel, "rb") as one, open(os.path.join(again, os.path.basename(wheel)),
                                                "rb") as two:
                self.assertEqual(one.read(), two.read())
            with zipfile.ZipFile(wheel) as archive:
                names = archive.namelist()
            self.assertEqual({n for n in names if n.startswith("autodl/")},
                             {"autodl/" + name for name, _ in sources()})
            done = run_python("-I", "-c", "import sys; sys.path.insert(0, %r); import autodl; "
                              "print(autodl.__version__, autodl.__file__)" % wheel)
            self.assertIn("0.1.0 " + wheel, done.stdout)


if __name__ == "__main__":
    unittest.main()
