# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside an instance, by its root."""
from hostile_world import *  # noqa: F401,F403 (the world and its tools)


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


@line("worker: 25,000 entries, names of all bytes, a tree of 500 levels and sparse terabytes")
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
