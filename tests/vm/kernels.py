#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Fetches or builds the kernels of kernels/table once, and keeps them in the cache.

    kernels.py kdir KERNEL          print the directory of a kernel's headers, for KDIR=
    kernels.py source PACKAGE       print the directory of an unpacked kernel source
"""

import filecmp
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import apt
import cache
import host

HERE = Path(__file__).resolve().parent / "kernels"
KERNELS = host.CACHE / "kernels"
SOURCES = host.CACHE / "source"

LLVM = "-14"
BUILD_PACKAGES = ("gcc", "libc6-dev", "make", "perl", "flex", "bison", "bc", "libelf-dev")
CLANG_PACKAGES = (f"clang{LLVM}", f"lld{LLVM}", f"llvm{LLVM}")

# sed edits of a copy (hard links) of the source. Modules are built against the copy, too.
EDITS = {
    # Measurements under User Mode Linux shall hold for other kernels, so four differences are
    # removed: on its one CPU it omits the lock prefix; it has 100 ticks a second; it disables
    # interrupts for each this_cpu operation, where x86 has an instruction; and it multiplies
    # 64-bit numbers in pieces, where x86-64 has an instruction. And on hosts with larger registers
    # than 6.1 knows (AMX) it cannot set them, since ptrace sets only all of them.
    "uml.config": r'''
s/^#define LOCK_PREFIX ""/#define LOCK_PREFIX "lock; "/ arch/x86/include/asm/alternative.h
/^config HZ$/,/default/s/default 100/default 250/ arch/um/Kconfig
/^#define this_cpu_generic_to_op/,/^}/s/raw_local_irq_\(save\|restore\)(__flags)/(void)__flags/ include/asm-generic/percpu.h
/^config UML_X86$/,/def_bool/s/def_bool y/&\n\tselect ARCH_SUPPORTS_INT128 if CC_HAS_INT128/ arch/x86/um/Kconfig
s/^int have_xstate_support;/#include <string.h>\n\n&\nstatic char host_fp[1 << 14];\nstatic size_t host_fp_size;/ arch/x86/um/os-Linux/registers.c
/^int restore_fp_registers/,/^}/{s/= fp_regs;/= memcpy(host_fp, fp_regs, FP_SIZE * sizeof(long));/;s/iov_len = .*/iov_len = host_fp_size;/} arch/x86/um/os-Linux/registers.c
/^void arch_init_registers/,/^}/{s/FP_SIZE \* sizeof(unsigned long)/sizeof(host_fp)/;s/support = 1;/support = !!(host_fp_size = iov.iov_len);/} arch/x86/um/os-Linux/registers.c
''',
    # By the strictest rules the kernel has many races of its own, and watching them leaves less
    # time to watch hwt. So only modules are instrumented, and the parts of lib/ that work on the
    # modules' memory. Of all other code KCSAN sees the barriers only, as of the scheduler.
    "kcsan.config": r'''
/^\t\$(CFLAGS_KCSAN))$/s/\$(CFLAGS_KCSAN)/$(if $(KBUILD_EXTMOD)$(filter lib_llist lib_find_bit lib_bitmap lib_rbtree lib_xarray,$(obj)_$(basetarget)),&,-D__KCSAN_INSTRUMENT_BARRIERS__)/ scripts/Makefile.lib
''',
}


# Modules for a guest with a disk and a directory of the host.
SHELL = ("virtio_pci", "virtio_blk", "ext4", "9pnet_virtio", "9p")
# Path prefixes of the modules that guests need, and of their dependencies. tar requires that each
# matches a module of every kernel.
PARTS = ("drivers/virtio/", "drivers/block/", "fs/", "lib/", "crypto/", "arch/x86/crypto/",
         "drivers/net/v", "drivers/net/wireguard/", "net/[9i]p", "net/802/", "net/bridge/", "net/llc/", "net/sched/")
MEMBERS = ("./lib/modules/*/modules.*", *(f"./lib/modules/*/kernel/{part}*" for part in PARTS))


class Kernel:
    """A row of the table. After get() it has its directory "dir", and so a release and an image."""

    def __init__(self, name, kind, source, config, tests, speed=""):
        self.name, self.kind, self.source, self.config, self.tests = \
            name, kind, source, config, tests
        self.slow = speed == "slow"
        self.arch = "x86_64"
        # Words for make to build modules, besides kdir.
        self.make_words = []
        self.dir = None

    def get(self):
        """Fetch the kernel if it is not in the cache, and hold it there."""
        while not self.dir:
            path = self.cached()
            if not path:
                with host.lock(self.lock()):
                    if not self.cached():
                        self.fetch()
            elif cache.hold(path):
                self.dir = path
        return self

    def packages(self):
        """Return the packages that get() installs, so that a caller can install them earlier."""
        return []

    def named(self):
        """Return a pattern of the names that the kernel has, or will have, in the cache."""
        path = self.cached()
        return path.name if path else ""

    def newest(self, complete=lambda path: True):
        """Return the newest release in the cache, or None. With one, no server is asked."""
        names = [path.name for path in KERNELS.glob("*") if complete(path)]
        name = newest(names, self.pattern())
        return KERNELS / name if name else None

    @property
    def release(self):
        """The release, as uname -r prints it."""
        return (self.dir / "release").read_text().strip()

    @property
    def vmlinuz(self):
        """The image; for User Mode Linux the program."""
        return self.dir / ("linux" if self.kind == "uml" else "vmlinuz")

    @property
    def kdir(self):
        """The directory that modules are built against."""
        build = self.dir / "build"
        return build if build.is_dir() else Path(f"/lib/modules/{self.release}/build")


def newest(names, pattern):
    """Return the newest of the names that match the whole pattern, or None."""
    return max((name for name in names if re.fullmatch(pattern, name)), default=None,
               key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


def keep_modules(tmp, release, directory, names):
    """Copy modules and their dependencies in load order, except a driver that is built here."""
    (tmp / directory).mkdir()
    host.output(["depmod", "-b", tmp, release])
    said = host.output(["modprobe", "-d", tmp, "-S", release, "--show-depends", "-a", *names])
    files = [Path(line.split()[1]) for line in said.splitlines()
             if line.startswith("insmod ") and "/wireguard/" not in line]
    for number, file in enumerate(dict.fromkeys(files), 10):
        if file.suffix == ".xz":
            host.output(["xz", "-d", file])
            file = file.with_suffix("")
        shutil.copy(file, tmp / directory / f"{number}-{file.name}")


def headers(names):
    """Return the packages that are kernel headers."""
    return [name for name in names if name.startswith("linux-headers-")]


def keep_build(tmp, release):
    """Keep the image and the build directory of unpacked packages, and move them into the cache."""
    (tmp / f"boot/vmlinuz-{release}").rename(tmp / "vmlinuz")
    # The only absolute path in use: that of the headers that all flavours share.
    makefile = tmp / f"usr/src/linux-headers-{release}/Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{KERNELS}/{release}/usr/src/"))
    (tmp / "build").symlink_to(f"usr/src/linux-headers-{release}")
    (tmp / "release").write_text(release + "\n")
    # Without vmlinux, modules are built without BTF, which needs pahole and is not used.
    for name in ("apt", "bin", "boot", "lib", "build/vmlinux"):
        cache.remove(tmp / name)
    tmp.rename(KERNELS / release)


class Packaged(Kernel):
    """The distribution's kernel: the headers are installed, the image is unpacked.

    modules/ has the modules that a guest needs for a disk, in load order; network/ those for two
    networks and for the drivers of driver.py, and the bridge unconverted; shell/ those for "make shell".
    """

    DISK = ("virtio_pci", "virtio_blk", "ext4")
    NETWORK = ("veth", "wireguard", "vrf", "sch_ingress", "sch_netem", "cls_flower", "act_gact", "bridge")

    def pattern(self):
        return rf"[0-9.]+-[0-9]+-{self.config}"

    def lock(self):
        return f"image-{self.config}"

    def cached(self):
        return self.newest(lambda path: (path / "vmlinuz").exists() and
                           all((path / name).is_dir() for name in ("modules", "network", "shell")) and
                           # Entries made before NETWORK had a bridge are not complete.
                           any((path / "network").glob("*-bridge.ko")) and
                           Path(f"/lib/modules/{path.name}/build").is_dir())

    def packages(self):
        return [] if self.cached() else [self.headers()]

    def headers(self):
        """Return the name of the newest headers."""
        # Old package lists may name a release that the server no longer has.
        apt.refresh()
        found = headers(apt.depends(self.source))
        if not found:
            raise host.Failed(f"there are no headers behind {self.source}")
        return found[0]

    def fetch(self):
        package = self.headers()
        release = package[len("linux-headers-"):]
        apt.install("kmod", package)
        with cache.making(KERNELS / release) as tmp:
            deb, = apt.download(tmp / "apt", [f"linux-image-{release}"])
            apt.extract(deb, tmp, f"./boot/vmlinuz-{release}", *MEMBERS)
            (tmp / f"boot/vmlinuz-{release}").rename(tmp / "vmlinuz")
            (tmp / "release").write_text(release + "\n")
            keep_modules(tmp, release, "modules", self.DISK)
            keep_modules(tmp, release, "network", self.NETWORK)
            # The kernel for clouds has no 9p.
            there = (tmp / f"lib/modules/{release}/kernel/net/9p").is_dir()
            keep_modules(tmp, release, "shell", SHELL if there else self.DISK)
            for name in ("apt", "boot", "lib"):
                cache.remove(tmp / name)
            # An earlier entry that is not complete.
            cache.remove(KERNELS / release)
            tmp.rename(KERNELS / release)


class Backport(Kernel):
    """A newer kernel of the distribution's backports, unpacked only. shell/ is as above."""

    def pattern(self):
        return rf"{re.escape(self.source)}\.[0-9]+\+[a-z0-9]+-{self.config}"

    def lock(self):
        return f"backport-{self.source}-{self.config}"

    def cached(self):
        return self.newest(lambda path: (path / "shell").is_dir())

    def fetch(self):
        with cache.making(KERNELS / f"{self.source}-{self.config}") as tmp:
            suite = apt.Suite(tmp / "apt", "-backports")
            prefix = "linux-headers-"
            release = newest((name[len(prefix):] for name in suite.names(prefix)), self.pattern())
            if not release:
                raise host.Failed(
                    f"{suite.name} has no kernel {self.source} of flavour {self.config}")
            # Besides the flavour's headers: the common headers, and the programs of the build.
            needs = [name for name in suite.depends(prefix + release)
                     if re.match("linux-(headers|kbuild)-", name)]
            if len(needs) != 2:
                raise host.Failed(f"{prefix}{release} needs {needs}: expected two packages")
            for deb in suite.download(f"linux-image-{release}", prefix + release, *needs):
                image = deb.name.startswith("linux-image-")
                apt.extract(deb, tmp, *([f"./boot/vmlinuz-{release}", *MEMBERS] if image else []))
            keep_modules(tmp, release, "shell", SHELL)
            # An earlier entry that is not complete.
            cache.remove(KERNELS / release)
            keep_build(tmp, release)


class Foreign(Kernel):
    """The distribution's kernel for another architecture, of this machine's series, unpacked.

    Modules for it are cross-built. It has a busybox besides the image and the headers.
    """

    def __init__(self, *row):
        super().__init__(*row)
        self.arch = self.source

    def pattern(self):
        return rf"[0-9.]+-[0-9]+-{self.config}"

    def lock(self):
        return f"foreign-{self.arch}-{self.config}"

    def cached(self):
        return self.newest()

    @staticmethod
    def kbuild(release):
        """Return the package of the build's programs, which run on this machine."""
        return "linux-kbuild-" + ".".join(release.split(".")[:2])

    def packages(self):
        path = self.cached()
        emulator = self.arch != "arm64" or host.have("qemu-system-aarch64")
        return ([self.kbuild(path.name)] if path else []) + \
            ([] if emulator else ["qemu-system-arm"])

    def get(self):
        super().get()
        apt.install(*self.packages())
        self.make_words = [f"ARCH={self.arch}"]
        if self.arch == "arm64":
            self.make_words.append(f"CROSS_COMPILE={cross()}")
        return self

    def fetch(self):
        with cache.making(KERNELS / f"{self.arch}-{self.config}") as tmp:
            suite = apt.Suite(tmp / "apt", "", self.arch)
            own, = headers(suite.depends(f"linux-headers-{self.config}"))
            release = own[len("linux-headers-"):]
            # The headers that all flavours share.
            common, = headers(suite.depends(own))
            members = {"linux-image": f"./boot/vmlinuz-{release}", "busybox": "./bin/busybox"}
            for deb in suite.download(f"linux-image-{release}", own, common,
                                      f"busybox-static:{self.arch}"):
                apt.extract(deb, tmp, *(member for start, member in members.items()
                                        if deb.name.startswith(start)))
            (tmp / "bin/busybox").rename(tmp / "busybox")
            kbuild = self.kbuild(release)
            (tmp / "usr/lib").mkdir(exist_ok=True)
            (tmp / "usr/lib" / kbuild).symlink_to(f"/usr/lib/{kbuild}")
            keep_build(tmp, release)


def option(line):
    """Return the name of an option."""
    return re.search(r"CONFIG_(\w+)", line)[1]


def requested(fragment):
    """Return the options of a fragment: those of its base, with its own among them or after them."""
    text = fragment.read_text()
    base = re.search(r"^# base: (.*)", text, re.M)
    without = " ".join(re.findall(r"^# without: (.*)", text, re.M)).split()
    lines = [line for line in (requested(HERE / base[1]) if base else ()) if option(line) not in without]
    at = len(lines)
    for after, line in re.findall(r"^# after: (.*)|^((?:# )?CONFIG_.*\n)", text, re.M):
        if after:
            at = [option(line) for line in lines].index(after)
        else:
            lines.insert(at, line)
        at += 1
    return lines


class Built(Kernel):
    """A kernel built from a linux-source package, or from the newest packaged source.

    Its configuration is tinyconfig and a fragment. A fragment may name another as its "# base:",
    and after "# without:" the options of the base to leave out. Options after a line "# after: NAME"
    follow that option of the base.
    """

    def __init__(self, *row):
        super().__init__(*row)
        self.fragment = HERE / self.config
        self.edits = EDITS.get(self.config, "")
        self.clang = self.kind == "clang"
        self.llvm = [f"LLVM={LLVM}"] if self.clang else []
        self.make_words = ["ARCH=um"] if self.kind == "uml" else self.llvm

    def packages(self):
        return [*BUILD_PACKAGES, *(CLANG_PACKAGES if self.clang else ()),
                *([] if self.source == "newest" else [self.source])]

    def asked(self):
        """Return the requested options, a line for each."""
        return "".join(requested(self.fragment))

    def entry(self, origin):
        """Return the name in the cache, with a hash of everything that the build depends on."""
        key = [origin.name, host.output(["gcc", "-dumpfullversion"]), host.output(["ld", "-v"]),
               self.asked() + (host.output([f"clang{LLVM}", "-dumpversion"]) if self.clang else "")]
        text = "\n".join(key) + ("\n" if self.clang else "")
        digest = short_hash(text + (self.edits + "\n" if self.edits else ""))
        return f"{origin.name}-{self.fragment.stem}{'-clang' if self.clang else ''}-{digest}"

    def edited(self, origin):
        """Return the path of the edited source, or the source itself if there are no edits."""
        name = f"{origin.name}-{self.fragment.stem}-{short_hash(self.edits + chr(10))}"
        return origin.with_name(name) if self.edits else origin

    def named(self):
        origin = source_path(self.source)
        tools = ["gcc", "ld", *([f"clang{LLVM}"] if self.clang else [])]
        if origin and all(map(host.have, tools)):
            return self.entry(origin)
        # The hash is not known yet. Without the link "newest", the newest source is fetched again.
        return "" if self.source == "newest" else f"{self.source}-*-{self.fragment.stem}-*"

    def get(self):
        if not self.dir:
            origin = source(self.source)
            if self.clang:
                apt.install(*CLANG_PACKAGES)
            path = KERNELS / self.entry(origin)
            self.dir = cache.once(path, "build-" + path.name.rsplit("-", 1)[1],
                                  lambda tmp: self.build(origin, path, tmp))
        return self

    def build(self, origin, path, tmp):
        """Configure and build the kernel in a directory, which takes minutes."""
        apt.install(*self.packages())
        origin = self.edit(origin)
        uml = self.kind == "uml"
        make = ["make", "-C", origin, f"O={tmp}/build", f"ARCH={'um' if uml else 'x86'}",
                *self.llvm, f"-j{host.JOBS}"]
        build = tmp / "build"
        build.mkdir()
        asked = self.asked()
        (tmp / "fragment").write_text(asked)
        host.logged(tmp / "config.log", f"configuring {self.source} with {self.config}",
                    ["sh", "-ec", CONFIGURE, origin, *make], cwd=tmp)
        self.verify(asked, (build / ".config").read_text(), origin)
        host.logged(tmp / "build.log", f"building it, about {'three' if uml else 'ten'} minutes",
                    [*make, "linux" if uml else "bzImage", "modules"])
        if uml:
            shutil.copy(build / "linux", tmp)
        else:
            shutil.copy(build / "arch/x86/boot/bzImage", tmp / "vmlinuz")
        shutil.copy(build / "include/config/kernel.release", tmp / "release")
        # Newer kernels (6.13) use the path where they were built.
        makefile = build / "Makefile"
        makefile.write_text(makefile.read_text().replace(str(build), f"{path}/build"))
        trim(build)

    def edit(self, origin):
        """Return the source to build, edited if necessary. Builds of modules need it later."""
        def make(tmp):
            tmp.rmdir()
            host.output(["cp", "-al", origin, tmp])
            for line in self.edits.split("\n"):
                if line:
                    command, file = line.rsplit(" ", 1)
                    # -i creates a new file, so the original, a hard link, does not change.
                    host.output(["sed", "-i.orig", command, tmp / file])
                    if filecmp.cmp(tmp / file, tmp / f"{file}.orig", shallow=False):
                        raise host.Failed(f"'{line}' changes nothing")

        path = self.edited(origin)
        return cache.once(path, f"source-{self.fragment.stem}", make) if self.edits else origin

    def verify(self, asked, config, origin):
        """Raise Failed unless the configuration has every requested option.

        olddefconfig silently drops options that are not possible. An option that is to be off must
        exist, because a wrong name would not be noticed.
        """
        config = set(config.splitlines())
        set_options = {line.split("=")[0] for line in config if line.startswith("CONFIG_")}
        known = symbols(origin)
        bad = []
        for line in map(str.strip, asked.splitlines()):
            off = re.fullmatch(r"# (CONFIG_(\w+)) is not set", line)
            if re.match(r"CONFIG_\w+=\S", line):
                if line not in config:
                    bad.append(f"not in .config: {line}")
            elif off and off[2] not in known:
                # A later version of the newest source may lack the option.
                host.say(f"no such option: {off[1]}")
                if self.source != "newest":
                    bad.append(f"no such option: {off[1]}")
            elif off:
                # An option that .config does not mention is off, too.
                if off[1] in set_options:
                    bad.append(f"not in .config: {line}")
            elif line and not re.match(r"#(?!\s*CONFIG_)", line):
                bad.append(f"neither an option nor a comment: {line}")
        if bad:
            raise host.Failed("\n  ".join(
                [f"the kernel would not have the configuration {self.config}:", *bad]))


CONFIGURE = """
"$@" tinyconfig
"$0/scripts/kconfig/merge_config.sh" -m -O "$PWD/build" "$PWD/build/.config" "$PWD/fragment"
"$@" olddefconfig
"""


def short_hash(text):
    """Return a hash of a text for the names of entries."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def symbols(origin):
    """Return the names of all options of a kernel source."""
    said = host.output(["grep", "-rhoE", "--include=Kconfig*",
                        r"^[[:space:]]*(menu)?config[[:space:]]+[A-Za-z0-9_]+", f"{origin}/"])
    return {line.split()[-1] for line in said.splitlines()}


def trim(build):
    """Remove objects: modules need only the headers, scripts, objtool and Module.symvers."""
    unwanted = re.compile(r".*\.(o|a)|\..*\.cmd|\.tmp_.*|vmlinux\.bin.*|bzImage")
    for directory, directories, names in os.walk(build):
        if Path(directory) == build:
            directories[:] = [name for name in directories if name not in ("scripts", "tools")]
        for name in names:
            path = Path(directory, name)
            if unwanted.fullmatch(name) and not path.is_symlink():
                path.unlink()


KINDS = {"package": Packaged, "backport": Backport, "foreign": Foreign, "source": Built,
         "clang": Built, "uml": Built}


def table():
    """Return all kernels of the table."""
    rows = (line.split("#")[0].split() for line in (HERE / "table").read_text().splitlines())
    return [KINDS[row[1]](*row[:6]) for row in rows if row]


def find(name):
    """Return the kernel of that name."""
    for kernel in table():
        if kernel.name == name:
            return kernel
    raise host.Failed(f"no kernel '{name}' in tests/vm/kernels/table")


# --- Sources ---------------------------------------------------------------------------------


def source_path(package):
    """Return the path of a source, unpacked or not; None if its version is not known yet."""
    if package == "newest":
        link = SOURCES / "newest"
        return link.resolve() if link.exists() else None
    version = apt.version(package)
    return SOURCES / f"{package}-{version}" if version else None


def source(package):
    """Return the directory of a linux-source package, which is installed and unpacked if needed.

    "newest" is the newest version in the distribution's unstable suite, fetched, not installed. The
    link "newest" in the cache names it. Without the link, the version is looked up again.
    """
    path = source_path(package)
    if not path and package == "newest":
        with host.lock("source-newest"):
            path = source_path(package) or fetch_newest()
    elif not path:
        apt.install(package)
        path = source_path(package)
    return cache.once(path, "source", lambda tmp: unpack(f"/usr/src/{package}.tar.xz", tmp))


def unpack(archive, tmp):
    """Unpack a source."""
    host.logged(SOURCES / "unpack.log", f"unpacking {Path(archive).name}",
                ["tar", "-C", tmp, "--strip-components=1", "-xf", archive])


def fetch_newest():
    """Fetch and unpack the newest source; return its directory."""
    with cache.making(SOURCES / "newest") as tmp:
        suite = apt.Suite(tmp / "apt", "sid")
        package = next(filter(re.compile("linux-source-").match, suite.depends("linux-source")))
        deb, = suite.download(package)
        path = SOURCES / f"{package}-{host.output(['dpkg-deb', '-f', deb, 'Version'])}"
        apt.extract(deb, tmp, f"./usr/src/{package}.tar.xz")
        cache.once(path, "source", lambda to: unpack(tmp / f"usr/src/{package}.tar.xz", to))
        (tmp / "link").symlink_to(path.name)
        (tmp / "link").rename(SOURCES / "newest")
    return path


# --- A compiler for arm64 --------------------------------------------------------------------

TRIPLET = "aarch64-linux-gnu"


def cross_path():
    """Return the path of the compiler, unpacked or not."""
    return host.CACHE / "cross" / f"{TRIPLET}-{host.output(['gcc', '-dumpversion'])}"


def cross():
    """Return the prefix of the programs of a compiler for arm64.

    The compiler is unpacked, not installed: its package conflicts with gcc-multilib, which builds
    the 32-bit programs.
    """
    path = cross_path()
    version = path.name[len(TRIPLET) + 1:]

    def make(tmp):
        for deb in apt.download(tmp / "apt", [
                f"gcc-{version}-{TRIPLET}", f"cpp-{version}-{TRIPLET}", f"binutils-{TRIPLET}",
                f"libgcc-{version}-dev-arm64-cross", "libc6-dev-arm64-cross",
                "linux-libc-dev-arm64-cross"]):
            apt.extract(deb, tmp)
        (tmp / "bin").mkdir()
        # The programs search for their libraries in the paths of an installation.
        for file in (tmp / "usr/bin").glob(f"{TRIPLET}-*"):
            script = tmp / "bin" / file.name
            script.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={path}/usr/lib/{os.uname().machine}"
                              f'-linux-gnu exec {path}/usr/bin/{file.name} "$@"\n')
            script.chmod(0o755)
        (tmp / f"bin/{TRIPLET}-gcc").symlink_to(f"{TRIPLET}-gcc-{version}")
        for name in ("apt", "usr/share"):
            cache.remove(tmp / name)

    return f"{cache.once(path, 'cross', make)}/bin/{TRIPLET}-"


# --- The cache and the command line ----------------------------------------------------------


def named():
    """Return patterns of the cache's entries that the table names."""
    kernels = table()
    patterns = {f"kernels/{kernel.named()}" for kernel in kernels}
    patterns |= {"source/newest", f"cross/{cross_path().name}" if host.have("gcc") else "cross/*"}
    for kernel in (kernel for kernel in kernels if isinstance(kernel, Built)):
        origin = source_path(kernel.source)
        if origin:
            patterns |= {f"source/{origin.name}", f"source/{kernel.edited(origin).name}"}
        elif kernel.source != "newest":
            patterns.add(f"source/{kernel.source}-*")
    return patterns


def main():
    """Carry out the command line."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("kdir", "source"):
        raise host.Failed("usage: kernels.py kdir KERNEL | source PACKAGE")
    if sys.argv[1] == "source":
        print(source(sys.argv[2]))
        return
    kernel = find(sys.argv[2])
    kernel.get()
    print(kernel.kdir)


if __name__ == "__main__":
    host.main(main)
