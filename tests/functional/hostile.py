#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A tenant with root inside an instance, another user with keys, and an unprivileged host user
attack a whole installation; everybody else must not notice.

    hostile.py           all attacks
    hostile.py net api   only those whose text or name holds one of the words

Prints PASS or FAIL per line, and the time it took.
"""
import contextlib
import glob
import json
import os
import pwd
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

import harness
from harness import BUSYBOX_IMAGE, TORCH_IMAGE, autodl, await_that, run

LINES = []
INIT_PORT = 65022


def line(text):
    def keep(function):
        LINES.append((text, function))
        return function
    return keep


class World:
    """One installation; the attacker's instance, the victim's, and what both share."""

    def __init__(self, site):
        self.site = site
        self.scratch = tempfile.mkdtemp(prefix="autodl-hostile-")
        self.key = self.path("key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        with open(self.key + ".pub") as public:
            self.public_key = public.read().strip()
        self.client, self.made = site.new_user("mallory")
        self.other_client, self.other_made = site.new_user("victim")
        self.mine = self.machine(self.client, "mine")
        self.theirs = self.machine(self.other_client, "theirs")

    def path(self, *parts):
        return os.path.join(self.scratch, *parts)

    def machine(self, client, name, image=TORCH_IMAGE, **keywords):
        keywords.setdefault("disk_size", 1)
        task = client.create_instance(name=name, image=image, gpu_type="RTX 3090",
                                      ssh_keys=[self.public_key], **keywords)
        start(task)
        return task

    def ssh(self, task, command, **keywords):
        keywords.setdefault("check", False)
        return run("ssh", "-i", self.key, "-o", "UserKnownHostsFile=/dev/null", "-o",
                   "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
                   "-o", "LogLevel=ERROR", "-p", task.ssh["port"], "root@" + task.ssh["host"],
                   command, **keywords)

    def python(self, task, program, **keywords):
        """Runs a Python program inside; returns what it printed as JSON."""
        done = self.ssh(task, "python -I -", input=PRELUDE + program, **keywords)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def address(self, task):
        return self.ssh(task, "hostname -I").stdout.split()[0]

    def others_are_well(self):
        """What a victim needs: API, exec, SSH, a file, in good time."""
        begun = time.monotonic()
        assert self.ssh(self.theirs, "echo well").stdout == "well\n"
        done = self.site.cli(self.other_made, "exec", self.theirs.id, "--", "echo", "well")
        assert done.stdout == "well\n", done
        assert self.other_client.list_files(self.theirs.id, "/etc")
        return time.monotonic() - begun


PRELUDE = r"""
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *args):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*args)
    return "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def syscall(number, *args):
    return attempt("syscall", *(ctypes.c_long(a) if isinstance(a, int) else a
                                for a in (number,) + args))
def write(path, text):
    try:
        with open(path, "wb", 0) as out: out.write(text)
        return "done"
    except OSError as e: return errno.errorcode[e.errno]
def dial(host, port, family=socket.AF_INET, seconds=0.7):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(seconds)
    try:
        s.connect((host, port)); return "open"
    except (socket.timeout, TimeoutError): return "silent"
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
"""


def start(task):
    task.start()
    await_that(lambda: task.status in ("RUNNING", "STOPPED"), "%s runs" % task.name, 60)
    assert task.status == "RUNNING", (task.state, task.reason)


def restart(task):
    if task.status == "RUNNING":
        task.stop()
    task.wait(90)
    start(task)


def host_addresses():
    rows = json.loads(run("ip", "-j", "addr").stdout)
    return [(info["family"], info["local"]) for row in rows for info in row["addr_info"]
            if info["scope"] != "link" or info["family"] == "inet"]


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open("/proc/%d/stat" % int(name)) as text:
                if int(text.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
    return found


# ---- network

@line("net: the host's addresses, metadata, LAN, other instances and every init are out of reach")
def net_unreachable(world):
    api = world.site.port
    with socket.socket() as everywhere:  # a service of the host on all addresses
        everywhere.bind(("0.0.0.0", 0))
        everywhere.listen(8)
        port = everywhere.getsockname()[1]
        targets = [(address, p) for family, address in host_addresses() if family == "inet"
                   and not address.startswith("127.") for p in (port, api, 22)]
        gateway = world.ssh(world.mine, "ip -4 route show default || cat /proc/net/route").stdout
        other = world.address(world.theirs)
        targets += [("169.254.169.254", 80), ("10.0.0.1", 80), ("192.168.0.1", 80),
                    ("172.16.0.1", 443), ("224.0.0.1", 80), ("255.255.255.255", 80),
                    (other, INIT_PORT), (other, 22), (other, 80)]
        found = world.python(world.mine, """
print(json.dumps([[t, dial(*t)] for t in %r]))""" % targets)
        opened = [entry for entry in found if entry[1] == "open"]
        assert not opened, (opened, gateway)
        everywhere.setblocking(False)
        try:
            everywhere.accept()
            raise AssertionError("a packet of the instance reached a service of the host")
        except BlockingIOError:
            pass


@line("net: no IPv6, no raw or packet socket, no foreign source address, no netlink changes")
def net_spoofing(world):
    other = world.address(world.theirs)
    found = world.python(world.mine, """
out = {}
for name, args in (("raw", (socket.AF_INET, socket.SOCK_RAW, 1)),
                   ("packet", (socket.AF_PACKET, socket.SOCK_RAW, 0x300))):
    try:
        socket.socket(*args); out[name] = "done"
    except OSError as e: out[name] = errno.errorcode[e.errno]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.setsockopt(socket.IPPROTO_IP, 15, 1)          # IP_FREEBIND needs no power
    s.bind((%r, 0)); s.sendto(b"x", ("1.1.1.1", 53)); out["foreign"] = "done"
except OSError as e: out["foreign"] = errno.errorcode[e.errno]
try:
    s.setsockopt(socket.IPPROTO_IP, 19, 1); out["transparent"] = "done"
except OSError as e: out["transparent"] = errno.errorcode[e.errno]
out["v6"] = dial("2606:4700:4700::1111", 53, socket.AF_INET6)
out["v6_link"] = dial("fe80::1%%eth0", 80, socket.AF_INET6)
out["nonlocal"] = write("/proc/sys/net/ipv4/ip_nonlocal_bind", b"1")
out["forward"] = write("/proc/sys/net/ipv4/ip_forward", b"1")
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); n.bind((0, 0))
# RTM_NEWADDR of the victim's address on eth0
body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, socket.if_nametoindex("eth0"))
body += struct.pack("=HH4s", 8, 2, socket.inet_aton(%r)) * 1
n.send(struct.pack("=IHHII", 16 + len(body), 20, 0x605, 1, 0) + body)
out["address"] = errno.errorcode.get(-struct.unpack("=i", n.recv(4096)[16:20])[0], "done")
print(json.dumps(out))""" % (other, other))
    refused = {key: value for key, value in found.items() if value in ("done", "open")}
    assert not refused, refused


@line("net: who dials the own init gets nothing, and cannot keep the node out")
def net_own_init(world):
    found = world.python(world.mine, """
import threading
def ask(data):
    s = socket.create_connection(("127.0.0.1", 65022), 5); s.settimeout(8)
    try:
        s.sendall(data); return len(s.recv(100))
    except OSError: return 0
v2 = b"\\r\\n\\r\\n\\0\\r\\nQUIT\\n\\x21\\x11"
out = {"words": ask(b"GET / HTTP/1.0\\r\\n\\r\\n"), "empty": ask(v2 + b"\\0\\0"),
       "v2": ask(v2 + b"\\0\\x0c" + b"\\x7f\\0\\0\\1" * 3),
       "long": ask(v2 + b"\\xff\\xff" + b"A" * 4000),
       "forged": ask(v2 + struct.pack(">H", 12 + 6 + 51) + b"\\x7f\\0\\0\\1" * 3 + b"\\xe0\\0\\3ssh"
                     + b"\\xe1\\0\\x30" + b"A" * 48)}
b = socket.socket()
try:
    b.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    b.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    b.bind((socket.gethostbyname(socket.gethostname()), 65022)); b.listen(5)
    out["stolen"] = 1
except OSError: out["stolen"] = 0
print(json.dumps(out))""", timeout=60)
    assert not any(found.values()), found
    flood = world.ssh(world.mine, """cat > /tmp/flood.py <<'EOF'
import socket, time
kept, end = [], time.monotonic() + 12
while time.monotonic() < end:
    try: kept.append(socket.create_connection(("127.0.0.1", 65022), 1))
    except OSError: pass
    if len(kept) > 300: kept.pop(0).close()
EOF
nohup python /tmp/flood.py >/dev/null 2>&1 & echo $!""")
    assert flood.returncode == 0, flood
    for _ in range(5):
        assert world.ssh(world.mine, "echo in").stdout == "in\n"
    world.ssh(world.mine, "kill %s" % flood.stdout.strip())


# ---- devices, kernel, namespaces

@line("kernel: no device node, no foreign card, no write into /sys or /proc, no kernel log")
def kernel_surfaces(world):
    found = world.python(world.mine, """
import stat
out = {}
for name, mode, device in (("mem", stat.S_IFCHR, (1, 1)), ("sda", stat.S_IFBLK, (8, 0)),
                           ("loop", stat.S_IFBLK, (7, 0)), ("card", stat.S_IFCHR, (195, 1)),
                           ("fuse", stat.S_IFCHR, (10, 229)), ("tun", stat.S_IFCHR, (10, 200))):
    for folder in ("/root", "/dev", "/dev/shm", "/run"):
        try:
            os.mknod("%s/%s" % (folder, name), mode | 0o600, os.makedev(*device))
            out[folder + name] = "done"
        except OSError as e: out[folder + name] = errno.errorcode[e.errno]
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
             "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname", "/proc/sys/fs/suid_dumpable",
             "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/memory/x",
             "/sys/class/net/eth0/mtu", "/proc/irq/default_smp_affinity", "/proc/1/oom_score_adj",
             "/opt/autodl/sbin/sshd", "/opt/autodl/x", "/usr/lib/autodl-nvidia/x"):
    out[path] = write(path, b"-1000")
for path in ("/proc/kcore", "/dev/kmsg", "/proc/kmsg", "/sys/firmware/x", "/proc/keys",
             "/proc/timer_list", "/dev/mem"):
    try:
        out[path] = "done" if open(path, "rb", 0).read(64) else "empty"
    except OSError as e: out[path] = errno.errorcode[e.errno]
out["klog"] = attempt("klogctl", 3, ctypes.create_string_buffer(4096), 4096)
print(json.dumps(out))""")
    # Its own oom_score_adj may only be raised: -1000 is refused by the kernel like all others.
    done = [key for key, value in found.items() if value == "done"]
    assert not done, done
    devices = world.ssh(world.mine, "ls /dev").stdout.split()
    assert not [d for d in devices if d.startswith(("sd", "loop", "vd", "nvme", "kvm", "mem"))], devices


@line("kernel: no user namespace, no mount, no module, no bpf, no keyring, no clock, no reboot")
def kernel_calls(world):
    found = world.python(world.mine, """
out = {}
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("net", 0x40000000),
                   ("pid", 0x20000000), ("cgroup", 0x02000000), ("time", 0x80)):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.unshare(flag) == 0 else 1)
    out["unshare " + name] = "done" if os.waitpid(pid, 0)[1] == 0 else "refused"
buffer = ctypes.create_string_buffer(256)
CLONE = 56
pid = libc.syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
out["clone user"] = "done" if pid > 0 else "refused"
class Args(ctypes.Structure): _fields_ = [("v", ctypes.c_uint64 * 11)]
args = Args(); args.v[0] = 0x10000000; args.v[4] = 17
pid = libc.syscall(435, ctypes.byref(args), 88)
if pid == 0: os._exit(0)
out["clone3 user"] = "done" if pid > 0 else "refused"
out["mount"] = attempt("mount", b"none", b"/mnt", b"tmpfs", 0, None)
out["remount"] = attempt("mount", None, b"/proc/sys", None, 32 | 4096, None)
out["umount"] = attempt("umount2", b"/proc/sysrq-trigger", 2)
out["pivot"] = syscall(155, b"/", b"/")
for name, number, arguments in (
        ("init_module", 175, (buffer, 10, b"")), ("bpf", 321, (0, buffer, 64)),
        ("perf", 298, (buffer, 0, -1, -1, 0)), ("keyctl", 250, (0, -3, 1)),
        ("add_key", 248, (b"user", b"x", b"y", 1, -3)), ("userfaultfd", 323, (0,)),
        ("io_uring", 425, (8, buffer)), ("open_by_handle", 304, (-100, buffer, 0)),
        ("name_to_handle_mount", 428, (-100, b"/", 1)), ("fsopen", 430, (b"ext4", 0)),
        ("setns", 308, (os.open("/proc/1/ns/mnt", 0) if os.access("/proc/1/ns/mnt", 4) else -1, 0)),
        ("swapon", 167, (b"/root/x", 0)), ("iopl", 172, (3,)), ("kexec", 246, (0, 0, 0, 0)),
        ("reboot", 169, (0xfee1dead, 672274793, 0x1234567, 0)), ("acct", 163, (b"/root/x",)),
        ("settimeofday", 164, (buffer, 0)), ("quotactl", 179, (0, b"/", 0, buffer))):
    out[name] = syscall(number, *arguments)
print(json.dumps(out))""")
    done = [key for key, value in found.items() if value == "done"]
    assert not done, done


@line("pid 1: no ptrace, no reading of its memory or key, and no signal ends or stops it")
def pid_one(world):
    found = world.python(world.mine, """
out = {"attach": attempt("ptrace", 16, 1, 0, 0), "seize": attempt("ptrace", 0x4206, 1, 0, 0)}
for name in ("mem", "environ", "maps", "auxv"):
    try:
        with open("/proc/1/" + name, "rb", 0) as f:
            out[name] = "done" if name != "mem" and f.read(10) else "opened"
    except OSError as e: out[name] = errno.errorcode[e.errno]
for name in os.listdir("/proc/1/fd"):
    for what in (os.readlink, lambda path: os.close(os.open(path, os.O_RDWR))):
        try: what("/proc/1/fd/" + name); out["fd"] = "done"
        except OSError as e: out.setdefault("fd", errno.errorcode[e.errno])
local = ctypes.create_string_buffer(64)
class Iov(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
a, b = Iov(ctypes.addressof(local), 64), Iov(0x400000, 64)
out["vm"] = syscall(310, 1, ctypes.byref(a), 1, ctypes.byref(b), 1, 0)
out["pidfd_getfd"] = syscall(438, libc.syscall(434, 1, 0), 3, 0)
out["key"] = "done" if os.path.exists("/run/autodl/boot/key") else "gone"
for number in (9, 19, 11, 6, 1, 3, 13, 14):
    os.kill(1, number)
out["state"] = open("/proc/1/stat").read().rsplit(")", 1)[1].split()[0]
print(json.dumps(out))""")
    assert found.pop("state") in "SR", found
    done = [key for key, value in found.items() if value in ("done", "opened")]
    assert not done, found
    assert world.ssh(world.mine, "echo alive").stdout == "alive\n"
    assert world.mine.status == "RUNNING"


@line("pid 1: starved of descriptors, processor and backlog, it keeps no other instance waiting")
def pid_one_starved(world):
    task = world.machine(world.client, "starved")
    world.python(task, """
import resource
resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
libc.sched_setscheduler(1, 5, ctypes.byref(ctypes.c_int(0)))
kept = []
for i in range(400):
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("127.0.0.1", 65022))
    except BlockingIOError: pass
    kept.append(s)
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    import time
    while True: time.sleep(60)
print("{}")""")
    quick = world.others_are_well()
    stop = threading.Event()

    def nag():
        while not stop.is_set():
            world.site.cli(world.made, "exec", task.id, "--", "true", check=False)

    def knock():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                with socket.create_connection((task.ssh["host"], port), 5) as door:
                    door.settimeout(10)
                    door.recv(10)

    port = task.ssh["port"]
    workers = [threading.Thread(target=f) for f in [nag] * 16 + [knock] * 24]
    for worker in workers:
        worker.start()
    try:
        await_that(lambda: len(threading.enumerate()) > 30, "the attack runs")
        slowest = max(world.others_are_well() for _ in range(3))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert slowest < 5 + 3 * quick, "SSH, exec and a listing took %.1f s (%.1f s before)" % (
        slowest, quick)
    task.stop()
    task.wait(90)
    task.release()


# ---- what the node reads of the instance

@line("files: exit.json as link, FIFO, folder, huge file or forged record tells the node nothing")
def hostile_exit_record(world):
    forged = json.dumps({"run": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "exit_code": 0})
    for trick in ("ln -sf /etc/shadow exit.json", "mkfifo exit.json", "mkdir -p exit.json/x",
                  "truncate -s 100G exit.json", "echo '%s' >exit.json" % forged,
                  "mkdir exit.json.new exit.json.new/x", "ln -sf /dev/zero exit.json.new"):
        task = world.client.create_task(
            name=None, image=BUSYBOX_IMAGE, gpu_type=None, gpu_count=0, disk_size=1,
            command="cd /run/autodl/boot && %s; exit 9" % trick)
        task.start()
        task.wait(60)
        assert task.outcome == "failed" and task.exit_code == 9, (
            trick, task.outcome, task.exit_code, task.reason)
        task.release()


@line("files: deep trees, many files and links in /run/autodl and the data folder hinder no restart")
def hostile_own_folders(world):
    task = world.mine
    node = world.site.child_pid("node")
    world.python(task, """
import shutil
for top in ("/run/autodl/boot", "/root/autodl-tmp"):
    os.chdir(top)
    for level in range(3000):
        os.mkdir("d"); os.chdir("d")
for i in range(5000): open("/run/autodl/boot/f%d" % i, "w").close()
os.symlink("/etc", "/run/autodl/boot/key.new")
for name in ("authorized_keys", "ssh", "env", "api.sock", "ssh_host_ed25519_key"):
    path = "/run/autodl/" + name
    if os.path.isdir(path): shutil.rmtree(path)
    elif os.path.exists(path): os.unlink(path)
    os.symlink("/dev/zero", path)
print("{}")""")
    world.site.cli(world.made, "exec", task.id, "--", "true", check=False)
    restart(task)
    assert world.ssh(task, "echo back").stdout == "back\n"
    assert world.site.child_pid("node") == node, "the node was restarted"
    world.ssh(task, "cd /root/autodl-tmp && find . -mindepth 1 -depth -delete")


@line("files: /root and the data folder replaced by links and files: own harm only, told clearly")
def hostile_mount_points(world):
    task = world.machine(world.client, "links", image=BUSYBOX_IMAGE)
    world.ssh(task, "rm -rf /workspace; ln -s /proc/1/root /workspace; mv /root /root2; "
                    "ln -s /etc /root; mkdir -p /etc/autodl-tmp; echo mine >/root2/x")
    task.stop()
    task.wait(60)
    before = os.listdir("/etc")
    with contextlib.suppress(autodl.AutodlError):
        world.client.list_files(task.id, "/root")
    with contextlib.suppress(autodl.AutodlError):
        world.client.upload_files(task_id=task.id, local_path=world.key + ".pub",
                                  remote_path="/root/")
    task.start()
    await_that(lambda: task.status in ("RUNNING", "STOPPED"), "it runs or says why", 60)
    assert os.listdir("/etc") == before, "the host's /etc changed"
    if task.status == "RUNNING":
        task.stop()
        task.wait(60)
    task.release()
    world.others_are_well()


@line("files: a disk without blocks or inodes stops its own uploads only, and starts again")
def full_disk(world):
    task = world.mine
    for fill in ("dd if=/dev/zero of=/root/fill bs=1M 2>/dev/null; dd if=/dev/zero of=/root/f2 bs=1",
                 "mkdir -p /root/many; cd /root/many; i=0; python -c \"\nimport os\n"
                 "try:\n for i in range(10**6): os.mknod(str(i))\nexcept OSError as e: print(e)\""):
        world.ssh(task, fill, timeout=300)
        assert world.ssh(task, "echo still").stdout == "still\n"
        restart(task)
        assert world.ssh(task, "rm -rf /root/fill /root/f2 /root/many; echo freed",
                         timeout=200).stdout == "freed\n"


@line("limits: pids, memory, log and shared memory run out for the attacker alone")
def limits(world):
    task = world.mine
    found = world.python(task, """
import time
pids = []
try:
    for i in range(20000):
        pid = os.fork()
        if pid == 0: time.sleep(600); os._exit(0)
        pids.append(pid)
except OSError as e: pass
for pid in pids: os.kill(pid, 9)
print(json.dumps(len(pids)))""", timeout=200)
    assert found < 5000, found
    shm = world.ssh(task, "dd if=/dev/zero of=/dev/shm/x bs=1M count=200000 2>&1 | tail -1; "
                          "rm -f /dev/shm/x; echo survived", timeout=200)
    assert "survived" in shm.stdout or shm.returncode != 0, shm
    task = world.client.create_task(
        name=None, image=BUSYBOX_IMAGE, gpu_type=None, gpu_count=0, disk_size=1,
        command="head -c 400000000 /dev/zero | tr '\\\\0' x; yes | head -c 200000000; exit 5")
    task.start()
    world.others_are_well()
    task.wait(180)
    assert task.exit_code == 5, (task.outcome, task.exit_code, task.reason)
    logs = glob.glob(os.path.join(world.site.dir, "state/node/**/logs/**/*"), recursive=True)
    used = sum(os.stat(path).st_blocks * 512 for path in logs if os.path.isfile(path))
    assert used < 300 << 20, "%d MiB of logs" % (used >> 20)
    task.release()


# ---- the file worker

@line("worker: links out of the root, FIFOs, devices, /proc and magic links give nothing of the host")
def worker_links(world):
    task, client = world.mine, world.client
    with open("/etc/machine-id" if os.path.exists("/etc/machine-id") else "/etc/hostname") as f:
        secret = f.read().strip()
    world.ssh(task, """rm -rf /root/w; mkdir /root/w; cd /root/w; mkfifo fifo; ln -s / up
ln -s ../../../../../../../../etc/machine-id rel; ln -s /proc/1/root/etc/machine-id magic
ln -s /proc/self/cwd cwd; ln -s loop loop; ln -s /dev/zero zero; ln -s /proc/self/fd/3 fd
python -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; echo mine >/etc/machine-id""")
    for name in ("fifo", "rel", "magic", "cwd/etc/machine-id", "loop", "zero", "fd", "sock", "up/proc/1/mem",
                 "up/proc/self/environ", "up/dev/null", "../../../etc/machine-id"):
        status, _, text = api(world, "GET", "/files/content?path=" + urllib.parse.quote("/root/w/" + name))
        assert secret not in str(text), name
        assert status in (200, 400, 403, 404, 409, 422), (name, status, text)
        if status == 200:
            assert str(text).strip() == "mine", (name, text)
    status, _, _ = api(world, "GET", "/files?recursive=1&path=/root/w")
    assert status == 200, status
    victim = world.path("victim")
    os.makedirs(victim, exist_ok=True)
    with contextlib.suppress(autodl.AutodlError, OSError):
        client.download_files(task_id=task.id, remote_path="/root/w", local_path=victim)
    for root, _, names in os.walk(victim):
        for name in names:
            path = os.path.join(root, name)
            if os.path.islink(path):
                assert os.path.realpath(path).startswith(os.path.realpath(victim)), path


@line("worker: folders swapped for links while files go up and down never reach outside")
def worker_races(world):
    task, client = world.mine, world.client
    world.ssh(task, "rm -rf /root/w; mkdir -p /root/w/a /root/w/b; echo inside >/root/w/a/f; "
                    "echo other >/root/w/b/f; ln -s /etc /root/w/evil")
    flip = world.ssh(task, """cat > /tmp/flip.py <<'EOF'
import ctypes, time
libc = ctypes.CDLL(None)
end = time.monotonic() + 25
while time.monotonic() < end:
    libc.renameat2(-100, b"/root/w/a", -100, b"/root/w/evil", 2)
EOF
nohup python /tmp/flip.py >/dev/null 2>&1 & echo $!""")
    before = sorted(os.listdir("/etc")), sorted(os.listdir("/"))
    local = world.path("up")
    with open(local, "w") as out:
        out.write("uploaded")
    counts = {}
    end = time.monotonic() + 6
    while time.monotonic() < end:
        for work in (lambda: client.upload_files(task_id=task.id, local_path=local,
                                                 remote_path="/root/w/a/"),
                     lambda: client.list_files(task.id, "/root/w", recursive=True),
                     lambda: api(world, "GET", "/files/content?path=/root/w/a/hostname")):
            try:
                work()
                counts["ok"] = counts.get("ok", 0) + 1
            except autodl.AutodlError as problem:
                counts[problem.code] = counts.get(problem.code, 0) + 1
    world.ssh(task, "kill %s; rm -rf /root/w /etc/up" % flip.stdout.strip())
    assert (sorted(os.listdir("/etc")), sorted(os.listdir("/"))) == before, "the host changed"
    assert counts.get("ok", 0) > 3 and not {"internal", "io_error"} & set(counts), counts
    assert client.list_files(task.id, "/root") is not None


@line("worker: 100,000 entries, names of all bytes, a tree of 500 levels and sparse terabytes")
def worker_big(world):
    task, client = world.mine, world.client
    world.python(task, r"""
os.makedirs("/root/big/many"); os.chdir("/root/big/many")
for i in range(20000):
    open("f%d" % i, "w").close()
os.makedirs("/dev/shm/many"); os.chdir("/root/big")
for name in (b"\xff\xfe", b"a\nb", b"\x1b[31m", b"..\xc0\xaf", b"%2e%2e", b"x" * 255, b" "):
    os.mkdir(name)
os.mkdir("deep"); os.chdir("deep")
for i in range(500): os.mkdir("n"); os.chdir("n")
os.chdir("/root/big"); os.mkdir("hard")
open("hard/0", "w").close()
for i in range(1, 5000): os.link("hard/0", "hard/%d" % i)
with open("sparse", "wb") as f: f.truncate(10 ** 12)
print("{}")""", timeout=200)
    begun = time.monotonic()
    listed = list(client.list_files(task.id, "/root/big", recursive=True))
    assert len(listed) > 25000, len(listed)
    assert not [row for row in listed if "\n" in row["path"] and row["path"] != "a\nb"]
    assert time.monotonic() - begun < 60, "the listing took %.0f s" % (time.monotonic() - begun)
    status, headers, body = api(world, "GET", "/files/content?path=/root/big/sparse&offset=999999999000&length=2000")
    assert status == 200 and len(body) <= 2000, (status, len(body))
    world.others_are_well()
    world.ssh(task, "rm -rf /root/big /dev/shm/many", timeout=100)


# ---- the API

def api(world, method, path, body=None, made=None, task=None):
    """A call below an instance, by its owner's token unless told otherwise."""
    token = (made or world.made)["token"]
    target = "/api/v1/instances/%s%s" % ((task or world.mine).id, path)
    return world.site.call(method, target, body, token=token)


def raw(world, data, seconds=10, half_close=False):
    """Bytes to the API's port; all that comes back."""
    with socket.create_connection(("127.0.0.1", world.site.port), seconds) as conn:
        conn.settimeout(seconds)
        try:
            conn.sendall(data)
            if half_close:
                conn.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                more = conn.recv(65536)
                if not more:
                    return answer
                answer += more
        except (socket.timeout, ConnectionError):
            return answer if "answer" in locals() else b""


@line("api: another account's instance, files, logs, exec, transfer, events and keys do not exist")
def api_foreign(world):
    theirs = world.theirs
    status, _, opened = api(world, "POST", "/transfers", {
        "path": "/root/t", "size": 3, "mode": 420, "sha256": "0" * 64}, made=world.other_made, task=theirs)
    assert status == 201, opened
    ticket = opened["ticket"]
    probes = [("GET", "", None), ("DELETE", "", None), ("POST", "/start", {}), ("POST", "/stop", {}),
              ("POST", "/release", {}), ("GET", "/logs", None), ("GET", "/events", None),
              ("GET", "/bill", None), ("GET", "/files?path=/root", None),
              ("GET", "/files/content?path=/etc/shadow", None),
              ("POST", "/directories", {"path": "/root/x", "mode": 493}),
              ("POST", "/transfers", {"path": "/root/x", "size": 1, "mode": 420, "sha256": "0" * 64}),
              ("POST", "/transfers/%s/complete" % ticket, {}), ("DELETE", "/transfers/" + ticket, None)]
    for method, path, body in probes:
        status, _, answer = api(world, method, path, body, task=theirs)
        assert status in (404, 405), (method, path, status, answer)
    upgrade = raw(world, ("POST /api/v1/instances/%s/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                          "Upgrade: autodl-frames\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n"
                          % (theirs.id, world.made["token"])).encode(), 3)
    assert b" 404 " in upgrade.split(b"\r\n")[0], upgrade[:200]
    # A ticket of theirs under an instance of ours.
    for method, path in (("POST", "/transfers/%s/complete" % ticket), ("DELETE", "/transfers/" + ticket)):
        status, _, answer = api(world, method, path, {} if method == "POST" else None)
        assert status == 404, (method, path, status, answer)
    for guess in ("../" + theirs.id, theirs.name, theirs.id.lower(), theirs.id[:-1] + "0", "%00", "*", "' OR 1=1 --",
                  "x" * 5000, theirs.id + "%2f..%2f" + theirs.id, "null", "-1"):
        status, _, _ = world.site.call("GET", "/api/v1/instances/" + urllib.parse.quote(guess, safe="%"),
                                       token=world.made["token"])
        assert status in (400, 404, 414, 431), (guess[:60], status)
    status, _, answer = world.site.call("GET", "/api/v1/instances", token=world.made["token"])
    assert theirs.id not in json.dumps(answer)
    for method, path, body in (("GET", "/api/v1/admin/accounts", None), ("POST", "/api/v1/admin/accounts",
                               {"name": "x", "role": "operator"}),
                               ("POST", "/api/v1/admin/accounts/%s/credit" % world.made["account"]["id"],
                                {"amount_micro": 10 ** 12, "reason": "me"}),
                               ("POST", "/api/v1/setup", {"setup_token": "adl_setup_x", "name": "me"})):
        status, _, answer = world.site.call(method, path, body, token=world.made["token"])
        assert status in (403, 404, 405, 409), (method, path, status, answer)
    assert world.theirs.status == "RUNNING"


@line("api: malformed JSON, wrong types, huge numbers, nesting and bodies are refused, nothing breaks")
def api_bodies(world):
    control = world.site.child_pid("control")
    head = ("POST /api/v1/instances HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
            "Content-Type: application/json\r\nConnection: close\r\n" % world.made["token"]).encode()
    bodies = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{\"image\":1}", b"[" * 30000, b"{\"a\":" * 9000,
              b'{"image":"x","image":"y"}', b'{"gpu_count":1e999}', b'{"gpu_count":-1}',
              b'{"disk_bytes":9223372036854775808}', b'{"env":{"A=B":"x"}}', b'{"env":{"A":"x\\u0000y"}}',
              b'{"name":"' + b"n" * 60000 + b'"}', b'{"command":"\\ud800"}', b'"' + b"x" * 60000 + b'"']
    for body in bodies:
        answer = raw(world, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        code = int(answer.split()[1]) if answer else 0
        assert 400 <= code < 500, (body[:60], answer[:300])
    huge = raw(world, head + b"Content-Length: 99999999999999\r\n\r\n" + b"x" * 200000)
    assert huge.split()[1:2] in ([b"413"], [b"400"]), huge[:200]
    chunked = raw(world, head + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
                  + b"ffffffffffffffff\r\n" + b"x" * 100000)
    assert chunked.split()[1:2] in ([b"413"], [b"400"]), chunked[:200]
    assert world.site.child_pid("control") == control
    assert len(list(world.client.list_tasks())) == len([t for t in world.client.list_tasks()])


@line("api: smuggled requests, header bombs and strange request lines are refused")
def api_smuggling(world):
    token = world.made["token"].encode()
    inner = b"GET /api/v1/account HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\n\r\n"
    start_line = b"POST /api/v1/instances HTTP/1.1\r\nHost: x\r\n"
    for name, data in (
            ("both", start_line + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner),
            ("two lengths", start_line + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner),
            ("plus", start_line + b"Content-Length: +5\r\n\r\nxxxxx"),
            ("xchunked", start_line + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner),
            ("space", start_line + b"Content-Length : 3\r\n\r\nabc" + inner),
            ("fold", start_line + b"X: a\r\n Content-Length: 3\r\n\r\n"),
            ("bare cr", b"GET /version HTTP/1.1\rHost: x\r\n\r\n"),
            ("nul", b"GET /ver\0sion HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("no version", b"GET /version\r\n\r\n"), ("version", b"GET /version HTTP/9.9\r\nHost: x\r\n\r\n"),
            ("absolute", b"GET http://evil/version HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("two hosts", b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 300),
            ("bomb", b"GET /version HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % i for i in range(9000)) + b"\r\n"),
            ("long", b"GET /version HTTP/1.1\r\nX: " + b"a" * 100000 + b"\r\n\r\n")):
        answer = raw(world, data, 4)
        assert answer.count(b"HTTP/1.1 200") == 0 and b"adl_" not in answer, (name, answer[:300])
        assert b"HTTP/1.1 5" not in answer or b" 505 " in answer, (name, answer[:300])
    assert raw(world, b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


@line("api: 3000 idle and slow connections keep nobody out")
def api_many_connections(world):
    kept = []
    try:
        for i in range(3000):
            conn = socket.create_connection(("127.0.0.1", world.site.port), 10)
            if i % 2:
                conn.sendall(b"GET /version HTTP/1.1\r\nHost: ")
            kept.append(conn)
        assert world.others_are_well() < 20
    finally:
        for conn in kept:
            conn.close()


# ---- the gateway

@line("gateway: a flood of connections to one endpoint keeps nobody out of another")
def gateway_flood(world):
    host, port = world.mine.ssh["host"], world.mine.ssh["port"]
    gateway = world.site.child_pid("gateway")
    kept = []
    try:
        for i in range(1500):
            # From many addresses: the limit is by client address.
            conn = socket.socket()
            conn.bind(("127.0.%d.%d" % (1 + i % 200, 1 + i // 200), 0))
            conn.settimeout(5)
            conn.connect((host, port))
            kept.append(conn)
        assert world.others_are_well() < 20
        with socket.create_connection((world.theirs.ssh["host"], world.theirs.ssh["port"]), 5) as conn:
            conn.settimeout(20)
            conn.sendall(os.urandom(100000))
            with contextlib.suppress(OSError):
                while conn.recv(65536):
                    pass
    finally:
        for conn in kept:
            conn.close()
    assert world.site.child_pid("gateway") == gateway
    await_that(lambda: world.ssh(world.mine, "echo in").stdout == "in\n", "the own endpoint is back", 60, 1)


# ---- an unprivileged user of the host

@line("host: another host user can open no socket, file, state or process of the installation")
def host_user(world):
    nobody = pwd.getpwnam("nobody")

    def as_nobody(*argv):
        return run("setpriv", "--reuid", nobody.pw_uid, "--regid", nobody.pw_gid, "--clear-groups",
                   *argv, check=False)
    sockets = []
    for root, _, names in os.walk(world.site.run_dir):
        sockets += [os.path.join(root, name) for name in names
                    if stat.S_ISSOCK(os.lstat(os.path.join(root, name)).st_mode)]
    named = {os.path.basename(path) for path in sockets}
    assert {"link.sock", "streams.sock"} <= named, sockets
    program = ("import socket, sys\nfor kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):\n"
               " s = socket.socket(socket.AF_UNIX, kind)\n try:\n  s.connect(sys.argv[1]); print('open')\n"
               " except PermissionError: pass\n except OSError as e: print(e.errno) if e.errno != 91 else 0")
    for path in sockets:
        tried = as_nobody("python3", "-c", program, path)
        assert "open" not in tried.stdout, path
    for folder in (world.site.dir + "/state", world.site.run_dir):
        seen = as_nobody("find", folder, "-type", "f", "-readable", "-not", "-path", "*/sim/*").stdout.split()
        assert not seen, seen[:10]
        written = as_nobody("find", folder, "-writable", "-not", "-type", "l").stdout.split()
        assert not written, written[:10]
    control = world.site.child_pid("control")
    with open("/proc/%d/status" % control) as text:
        status = dict(row.split(":\t", 1) for row in text.read().splitlines() if ":\t" in row)
    assert status["Uid"].split()[0] != "0" and int(status["CapBnd"], 16) == 0, status["Uid"]
    # Control's own user, were control taken over: the node's sockets and folders stay the node's.
    uid, gid = status["Uid"].split()[0], status["Gid"].split()[0]
    for name in ("link.sock", "streams.sock", "rt"):
        path = os.path.join(world.site.run_dir, name)
        moved = run("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "mv", path, path + ".x",
                    check=False)
        assert moved.returncode != 0 and os.path.lexists(path), "control's user moved " + name


@line("host: no token, key or secret in logs, command lines, environments or events")
def secrets_told(world):
    with open(world.site.log_path, errors="replace") as log:
        text = log.read()
    secrets = [made[name] for made in (world.made, world.other_made, world.site.operator)
               for name in ("token", "secret_key")]
    assert not [s for s in secrets if s in text] and "adl_setup_" not in text
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                with open("/proc/%s/%s" % (pid, name), "rb") as f:
                    data = f.read()
                if name == "environ" and b"AUTODL_SECRET_KEY" in data:
                    continue  # a client of this test
                assert not [s for s in secrets if s.encode() in data], (pid, name)
    told = json.dumps([dict(e) for e in world.mine.events()]) + json.dumps(dict(world.mine.info()))
    assert not [s for s in secrets if s in told] and "PRIVATE KEY" not in told
    status, _, listing = world.site.call("GET", "/api/v1/account", token=world.made["token"])
    assert status == 200 and world.made["secret_key"] not in json.dumps(listing)


@line("at the end: no child died, everything can be released and nothing is left")
def at_the_end(world):
    with open(world.site.log_path, errors="replace") as log:
        died = [row for row in log if "was killed by signal" in row or "/serve: " in row and "ended with" in row]
    assert not died, died
    world.others_are_well()
    for client in (world.client, world.other_client):
        for task in client.list_tasks():
            if task.status in ("RUNNING", "QUEUED", "STARTING"):
                task.stop()
                task.wait(90)
            task.release()
    await_that(lambda: not list(world.client.list_tasks()), "all are released", 60)
    after = {}

    def clean():
        after.update(harness.footprint(world.site.tag))
        return after == world.before
    await_that(clean, "footprint as before %s" % world.before, 60)


def main(words):
    chosen = [(text, f) for text, f in LINES
              if not words or any(w in text or w in f.__name__ for w in words)]
    failed = 0
    with harness.Installation(images=(BUSYBOX_IMAGE, TORCH_IMAGE), gpus="RTX 3090:4",
                              name="host") as site:
        before = harness.footprint(site.tag)
        try:
            world = World(site)
        except Exception:
            print(site.log_tail())
            raise
        world.before = before
        for text, function in chosen:
            begun = time.monotonic()
            try:
                if world.mine.status != "RUNNING":
                    restart(world.mine)
                function(world)
                print("PASS %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
            except Exception:
                failed += 1
                print("FAIL %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
                traceback.print_exc(file=sys.stdout)
        shutil.rmtree(world.scratch, ignore_errors=True)
        if failed:
            print(site.log_tail())
    print("hostile: done, %d of %d lines failed" % (failed, len(chosen)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
