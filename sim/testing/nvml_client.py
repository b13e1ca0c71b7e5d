#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""nvml_client.py LIBRARY AUTODL_SIM_GPU: a client of libnvidia-ml in the manner of pynvml.

Declares NVML's structures as such clients do and checks answers, sizes and error codes.
"""
import ctypes as c
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, TOOL = sys.argv[1:3]
OK, NOT_SUPPORTED, NOT_FOUND, SMALL, NO_DRIVER, TIMEOUT, LOST, MISMATCH, BAD_VERSION = (
    0, 3, 6, 7, 9, 10, 15, 18, 25)
MIB = 1 << 20


class Pci(c.Structure):
    _fields_ = [("legacy", c.c_char * 16), ("domain", c.c_uint), ("bus", c.c_uint),
                ("device", c.c_uint), ("id", c.c_uint), ("subsystem", c.c_uint),
                ("bus_id", c.c_char * 32)]


class Memory(c.Structure):
    _fields_ = [("total", c.c_ulonglong), ("free", c.c_ulonglong), ("used", c.c_ulonglong)]


class Memory2(c.Structure):
    _fields_ = [("version", c.c_uint), ("total", c.c_ulonglong), ("reserved", c.c_ulonglong),
                ("free", c.c_ulonglong), ("used", c.c_ulonglong)]


class Rates(c.Structure):
    _fields_ = [("gpu", c.c_uint), ("memory", c.c_uint)]


class Process(c.Structure):
    _fields_ = [("pid", c.c_uint), ("memory", c.c_ulonglong), ("gi", c.c_uint), ("ci", c.c_uint)]


class Event(c.Structure):
    _fields_ = [("device", c.c_void_p), ("type", c.c_ulonglong), ("data", c.c_ulonglong),
                ("gi", c.c_uint), ("ci", c.c_uint)]


class NvmlClient(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.state = os.path.join(self.folder.name, "state")
        os.environ["AUTODL_SIM_STATE"] = self.state
        self.tool("create", "RTX 3090:1,A100 40GB:1")
        self.nvml = c.CDLL(LIBRARY)
        self.assertEqual(self.nvml.nvmlInit_v2(), OK)

    def tearDown(self):
        while self.nvml.nvmlShutdown() == OK:
            pass
        self.folder.cleanup()

    def tool(self, *arguments):
        subprocess.run([TOOL, "--state", self.state, *arguments], check=True)

    def handle(self, index):
        device = c.c_void_p()
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(index, c.byref(device)), OK)
        return device

    def text(self, name, *arguments):
        buffer = c.create_string_buffer(96)
        self.assertEqual(getattr(self.nvml, name)(*arguments, buffer, 96), OK, name)
        return buffer.value.decode()

    def number(self, name, *arguments):
        value = c.c_uint()
        self.assertEqual(getattr(self.nvml, name)(*arguments, c.byref(value)), OK, name)
        return value.value

    def test_system(self):
        self.assertEqual(self.text("nvmlSystemGetDriverVersion"), "550.163.01")
        self.assertEqual(self.number("nvmlSystemGetCudaDriverVersion_v2"), 12040)
        self.assertEqual(self.number("nvmlDeviceGetCount_v2"), 2)
        self.nvml.nvmlErrorString.restype = c.c_char_p
        self.assertEqual(self.nvml.nvmlErrorString(15), b"GPU is lost")
        name = c.create_string_buffer(128)
        self.assertEqual(self.nvml.nvmlSystemGetProcessName(os.getpid(), name, 128), OK)
        self.assertIn(b"python", name.value)
        self.assertEqual(self.nvml.nvmlSystemGetProcessName(4194304, name, 128), NOT_FOUND)

    def test_identity(self):
        device = self.handle(0)
        self.assertEqual(self.text("nvmlDeviceGetName", device), "NVIDIA GeForce RTX 3090")
        uuid = self.text("nvmlDeviceGetUUID", device)
        again = c.c_void_p()
        self.assertEqual(
            self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), c.byref(again)), OK)
        self.assertEqual(again.value, device.value)
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByUUID(b"GPU-x", c.byref(again)), NOT_FOUND)
        pci = Pci()
        self.assertEqual(self.nvml.nvmlDeviceGetPciInfo_v3(device, c.byref(pci)), OK)
        self.assertEqual(pci.bus_id, b"00000000:3B:00.0")
        self.assertEqual(pci.legacy, b"0000:3B:00.0")
        self.assertEqual(pci.id, 0x220410de)
        self.assertEqual(
            self.nvml.nvmlDeviceGetHandleByPciBusId_v2(b"00000000:3b:00.0", c.byref(again)), OK)
        self.assertEqual(self.nvml.nvmlDeviceGetName(device, c.create_string_buffer(4), 4), SMALL)

    def test_figures_follow_the_state(self):
        device = self.handle(0)
        self.tool("load", "0", "80", "1024")
        rates, memory, memory2 = Rates(), Memory(), Memory2(version=c.sizeof(Memory2) | 2 << 24)
        self.assertEqual(self.nvml.nvmlDeviceGetUtilizationRates(device, c.byref(rates)), OK)
        self.assertEqual(rates.gpu, 80)
        self.assertEqual(self.nvml.nvmlDeviceGetMemoryInfo(device, c.byref(memory)), OK)
        self.assertEqual(self.nvml.nvmlDeviceGetMemoryInfo_v2(device, c.byref(memory2)), OK)
        self.assertEqual(memory.total, 24576 * MIB)
        self.assertEqual(memory2.used, 1024 * MIB)
        self.assertEqual(memory.used, memory2.used + memory2.reserved)
        self.assertEqual(memory.free, memory2.free)
        self.assertEqual(memory.free + memory.used, memory.total)
        memory2.version = 1
        self.assertEqual(
            self.nvml.nvmlDeviceGetMemoryInfo_v2(device, c.byref(memory2)), BAD_VERSION)
        hot = self.number("nvmlDeviceGetTemperature", device, 0)
        self.tool("load", "0", "0", "0")
        self.assertLess(self.number("nvmlDeviceGetTemperature", device, 0), hot)
        self.tool("set", "0", "temperature", "88")
        self.assertEqual(self.number("nvmlDeviceGetTemperature", device, 0), 88)

    def test_what_cannot_be_told(self):
        geforce, a100, value = self.handle(0), self.handle(1), c.c_uint()
        pending = c.c_uint()
        nvml = self.nvml
        self.assertEqual(nvml.nvmlDeviceGetFanSpeed(a100, c.byref(value)), NOT_SUPPORTED)
        self.assertEqual(nvml.nvmlDeviceGetFanSpeed(geforce, c.byref(value)), OK)
        buffer = c.create_string_buffer(32)
        self.assertEqual(nvml.nvmlDeviceGetSerial(geforce, buffer, 32), NOT_SUPPORTED)
        self.assertEqual(nvml.nvmlDeviceGetSerial(a100, buffer, 32), OK)
        mode = (c.byref(value), c.byref(pending))
        self.assertEqual(nvml.nvmlDeviceGetMigMode(geforce, *mode), NOT_SUPPORTED)
        self.assertEqual(nvml.nvmlDeviceGetMigMode(a100, *mode), OK)
        self.tool("set", "0", "temperature", "-1")
        self.assertEqual(nvml.nvmlDeviceGetTemperature(geforce, 0, c.byref(value)), NOT_SUPPORTED)
        self.assertFalse(hasattr(nvml, "nvmlDeviceGetNoSuchThing"))

    def test_no_processes(self):
        count = c.c_uint(0)
        device = self.handle(0)
        for name in ("Compute", "Graphics", "MPSCompute"):
            call = getattr(self.nvml, "nvmlDeviceGet%sRunningProcesses_v3" % name)
            self.assertEqual(call(device, c.byref(count), None), OK)
            self.assertEqual(count.value, 0)

    def test_lost_card(self):
        first, device, value = self.handle(0), c.c_void_p(), c.c_uint()
        self.tool("fault", "0", "lost")
        self.assertEqual(self.nvml.nvmlDeviceGetTemperature(first, 0, c.byref(value)), LOST)
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(device)), LOST)
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(1, c.byref(device)), OK)
        self.assertEqual(self.number("nvmlDeviceGetCount_v2"), 2)
        self.tool("fault", "0", "ok")
        self.assertEqual(self.nvml.nvmlDeviceGetTemperature(first, 0, c.byref(value)), OK)

    def test_driver_faults(self):
        self.tool("driver-fault", "mismatch")
        self.assertEqual(self.nvml.nvmlInit_v2(), MISMATCH)
        self.tool("driver-fault", "not-loaded")
        self.assertEqual(self.nvml.nvmlInit(), NO_DRIVER)
        os.remove(self.state)
        self.assertEqual(self.nvml.nvmlInit_v2(), NO_DRIVER)

    def test_xid_event(self):
        events, event = c.c_void_p(), Event()
        nvml = self.nvml
        nvml.nvmlDeviceRegisterEvents.argtypes = [c.c_void_p, c.c_ulonglong, c.c_void_p]
        self.assertEqual(nvml.nvmlEventSetCreate(c.byref(events)), OK)
        self.assertEqual(nvml.nvmlDeviceRegisterEvents(self.handle(1), 8, events), OK)
        self.assertEqual(nvml.nvmlEventSetWait_v2(events, c.byref(event), 1), TIMEOUT)
        self.tool("xid", "1", "48")
        self.assertEqual(nvml.nvmlEventSetWait_v2(events, c.byref(event), 5000), OK)
        self.assertEqual((event.type, event.data), (8, 48))
        self.assertEqual(event.device, self.handle(1).value)
        self.assertEqual(nvml.nvmlEventSetFree(events), OK)

    def test_bad_state_is_no_driver(self):
        with open(self.state, "r+b") as state:
            state.write(b"\xff" * 64)
        self.assertEqual(self.nvml.nvmlInit_v2(), NO_DRIVER)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
