# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of bin/check_env against made-up environments: a stub nvidia-smi, toolkit and torch.

    cd toolbox && python3 -m unittest check_env_test      (CHECK_ENV_SH=busybox: under busybox sh)
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin/check_env")
SHELL = ["busybox", "sh"] if os.environ.get("CHECK_ENV_SH") == "busybox" else ["/bin/sh"]
R3090 = ("NVIDIA GeForce RTX 3090", "8.6")
R4090 = ("NVIDIA GeForce RTX 4090", "8.9")
R5090 = ("NVIDIA GeForce RTX 5090", "12.0")
V100 = ("Tesla V100-SXM2-32GB", "7.0")
H100 = ("NVIDIA H100 80GB HBM3", "9.0")
A100 = ("NVIDIA A100-SXM4-80GB", "8.0")
GTX1080 = ("NVIDIA GeForce GTX 1080 Ti", "6.1")


class CheckEnv(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.env = {"PATH": self.root + "/path:/usr/bin:/bin", "LANG": "C.UTF-8",
                    "AUTODL_CHECK_ROOT": self.root, "PYTHONPATH": self.root + "/site"}
        self.write("path/python", '#!/bin/sh\nexec %s "$@"\n' % sys.executable, 0o755)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def cards(self, driver, *cards, says=None, exit_code=0, header="", old=False):
        """A stub nvidia-smi: `cards` are (name, compute capability)."""
        for index in range(len(cards) or 1):
            self.write("dev/nvidia%d" % index, "")
        rows = ["%s, %s, 24576 MiB" % (driver, name) for name, _ in cards]
        full = ["%s, %s" % (row, cap) for row, (_, cap) in zip(rows, cards)]
        if says is not None:
            body = "echo '%s'; exit %d" % (says, exit_code)
        else:
            body = ('case "$*" in *compute_cap*) %s ;; *query*) printf "%%s\\n" %s ;; *) echo "%s" ;; '
                    "esac" % ("echo 'Field \"compute_cap\" is not a valid field'; exit 2" if old else
                              'printf "%s\\n" ' + " ".join("'%s'" % row for row in full),
                              " ".join("'%s'" % row for row in rows), header))
        self.write("usr/lib/autodl-nvidia/bin/nvidia-smi", "#!/bin/sh\n%s\n" % body, 0o755)

    def torch(self, version, cuda):
        self.write("site/torch/__init__.py", "raise SystemExit('imported')\n")
        self.write("site/torch/version.py",
                   "from typing import Optional\n__version__ = '%s'\ndebug = False\n"
                   "cuda: Optional[str] = %r\nhip: Optional[str] = None\n" % (version, cuda))

    def nvcc(self, version):
        self.write("usr/local/cuda/bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release %s, "
                   "V%s.1'\n" % (version, version), 0o755)

    def pretend_python(self, version):
        """A `python` that says this version and where torch is."""
        folder = os.path.join(self.root, "site/torch")
        self.write("path/python", "#!/bin/sh\nprintf '%%s\\n%%s\\n' %s.1 %s\n" % (
            version, folder if os.path.isdir(folder) else '""'), stat.S_IRWXU)

    def check(self, code, *words, without=(), **env):
        done = subprocess.run(SHELL + [SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(self.env, **env), universal_newlines=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)
        for word in without:
            self.assertNotIn(word, done.stdout)
        return done.stdout

    def test_no_card_is_no_fault(self):
        self.check(0, "without a card", "--gpus 1")

    def test_all_fits(self):
        self.cards("550.163.01", R3090)
        self.nvcc("12.1")
        self.torch("2.6.0+cu124", "12.4")
        self.pretend_python("3.11")
        self.check(0, "RTX 3090", "550.163.01", "CUDA 12.4", "2.6.0+cu124", "fit together",
                   without=("PROBLEM", "warning"))

    def test_driver_branches(self):
        for driver, cuda in (("450.80.02", "11.0"), ("470.82.01", "11.4"), ("515.65.01", "11.7"),
                             ("525.85.12", "12.0"), ("535.104.05", "12.2"), ("550.54.15", "12.4"),
                             ("565.57.01", "12.7"), ("570.124.06", "12.8"), ("580.65.06", "13.0")):
            with self.subTest(driver):
                self.cards(driver, R3090)
                self.check(0, "programs up to CUDA %s\n" % cuda)

    def test_newer_driver_than_the_table_tells_itself(self):
        self.cards("610.10", R3090, header="| CUDA Version: 14.1 |")
        self.check(0, "up to CUDA 14.1")

    def test_old_driver_does_not_know_compute_cap(self):
        self.cards("470.82.01", A100, old=True)
        self.check(0, "compute capability 8.0")

    def test_major_too_new_is_error_35(self):
        self.cards("470.82.01", R3090)
        self.torch("2.3.1+cu121", "12.1")
        self.pretend_python("3.10")
        self.check(1, "error 35", "525.60.13", "torch==2.3.*", "whl/cu118")

    def test_minor_newer_runs_with_a_warning(self):
        self.cards("525.85.12", R4090)
        self.torch("2.4.0+cu124", "12.4")
        self.pretend_python("3.10")
        self.check(0, "error 222", "fits, with 1 warning", without=("PROBLEM",))

    def test_5090_needs_27_cu128(self):
        self.cards("570.124.06", R5090)
        self.torch("2.6.0+cu124", "12.4")
        self.pretend_python("3.9")
        self.check(1, "error 209", "sm_90", "torch==2.8.*", "whl/cu128")

    def test_v100_and_new_wheels(self):
        self.cards("580.65.06", V100)
        self.torch("2.11.0+cu130", "13.0")
        self.pretend_python("3.12")
        self.check(1, "error 209", "torch==2.11.*", "whl/cu126")

    def test_v100_cu128_of_28_has_its_code(self):
        self.cards("580.65.06", V100)
        self.torch("2.8.0+cu128", "12.8")
        self.pretend_python("3.12")
        self.check(0, without=("PROBLEM",))

    def test_v100_cu128_of_27_has_not(self):
        self.cards("580.65.06", V100)
        self.torch("2.7.0+cu128", "12.8")
        self.pretend_python("3.12")
        self.check(1, "error 209", "torch==2.7.*")

    def test_h100_needs_20_cu118(self):
        self.cards("525.85.12", H100)
        self.torch("1.13.1+cu117", "11.7")
        self.pretend_python("3.10")
        self.check(1, "error 209")

    def test_1080ti_runs_on_sm_60(self):
        self.cards("535.104.05", GTX1080)
        self.torch("2.3.0+cu121", "12.1")
        self.pretend_python("3.11")
        self.check(0, without=("PROBLEM", "209"))

    def test_4090_needs_no_sm_89(self):
        self.cards("535.104.05", R4090)
        self.torch("2.1.0+cu121", "12.1")
        self.pretend_python("3.11")
        self.check(0, "fit together")

    def test_mixed_cards_the_worst_counts(self):
        self.cards("570.124.06", R3090, R5090)
        self.torch("2.6.0+cu124", "12.4")
        self.pretend_python("3.11")
        self.check(1, "error 209")

    def test_cpu_build(self):
        self.cards("550.163.01", R3090)
        self.torch("2.6.0+cpu", None)
        self.pretend_python("3.11")
        self.check(1, "Torch not compiled with CUDA enabled", "torch==2.6.*", "whl/cu124")

    def test_cpu_build_without_a_card_is_fine(self):
        self.torch("2.6.0", None)
        self.check(0, "processors only")

    def test_no_wheel_fits(self):
        self.cards("470.82.01", R5090)
        self.torch("2.6.0+cu118", "11.8")
        self.pretend_python("3.11")
        self.check(1, "no PyTorch wheel fits")

    def test_other_builds_are_not_judged(self):
        self.cards("570.124.06", R5090)
        self.torch("2.6.0a0+ecf3bae40a.nv25.01", "12.8")
        self.pretend_python("3.12")
        self.check(0, "can't be told", "get_arch_list", without=("209",))

    def test_torch_is_read_not_imported(self):
        self.cards("550.163.01", R3090)
        self.torch("2.6.0+cu124", "12.4")
        self.check(0, "2.6.0+cu124", without=("imported",))

    def test_driver_mismatch(self):
        self.cards("", says="Failed to initialize NVML: Driver/library version mismatch", exit_code=18)
        self.check(1, "tell the operator", "version mismatch")

    def test_lost_device_access(self):
        self.cards("", says="Failed to initialize NVML: Unknown Error", exit_code=255)
        self.check(1, "stop and start the instance")

    def test_device_without_driver_files(self):
        self.write("dev/nvidia0", "")
        self.check(1, "not the driver's files")

    def test_compat_on_geforce_is_804(self):
        self.cards("535.104.05", R4090)
        self.write("usr/local/cuda/compat/libcuda.so.1", "")
        self.check(1, "error 804", LD_LIBRARY_PATH="/usr/local/cuda/compat")

    def test_compat_on_data_center_card_raises_cuda(self):
        self.cards("535.104.05", A100)
        self.write("usr/local/cuda/compat/libcuda.so.550.54.15", "")
        os.symlink("libcuda.so.550.54.15", self.root + "/usr/local/cuda/compat/libcuda.so.1")
        self.check(0, "from 12.2 to 12.4", LD_LIBRARY_PATH="/usr/local/cuda/compat")

    def test_images_own_libcuda_is_803(self):
        self.cards("535.104.05", R4090)
        self.write("opt/x/libcuda.so.470.82.01", "")
        os.symlink("libcuda.so.470.82.01", self.root + "/opt/x/libcuda.so.1")
        self.check(1, "error 803", LD_LIBRARY_PATH="/nowhere:/opt/x")

    def test_toolkit_of_a_newer_major(self):
        self.cards("470.82.01", R3090)
        self.nvcc("12.4")
        self.check(1, "error 35", "525.60.13")

    def test_toolkit_of_a_newer_minor(self):
        self.cards("525.85.12", R3090)
        self.nvcc("12.4")
        self.check(0, "error 222", "sm_86")

    def test_toolkit_and_torch_of_two_majors(self):
        self.cards("550.163.01", R3090)
        self.nvcc("11.8")
        self.torch("2.6.0+cu124", "12.4")
        self.pretend_python("3.11")
        self.check(0, "extensions can't be compiled")

    def test_hidden_cards(self):
        self.cards("550.163.01", R3090)
        self.check(1, "unset CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="")

    def test_chinese(self):
        self.cards("550.163.01", R3090)
        self.torch("2.6.0+cpu", None)
        self.pretend_python("3.11")
        self.check(1, "结论", "仅 CPU 版本", "不匹配", LANG="zh_CN.UTF-8", without=("verdict",))


if __name__ == "__main__":
    unittest.main()
