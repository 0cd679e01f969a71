#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the Debian packages in a new Debian 12, and a newcomer's commands. Prints TAP.

The packages are built, checked by lintian, installed (dkms builds the module), used by another dkms
module, by a program and in a guest, upgraded, and purged. Then the module is installed from the
sources, by dkms and by hand. Last, the commands of CONTRIBUTING.md run in a copy of the sources.

All files are in build/packages, where root/ is the Debian.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / "tests" / folder) for folder in ("vm", "static")]
import boot
import debian
import documentation
import host
import kernels
import tap
from listing import Test

HERE = Path(__file__).resolve().parent / "packages"
OUT = host.BUILD / "packages"
ROOT = OUT / "root"
LOG = OUT / "log"
PACKAGES = ("hwt-dkms", "hwt-tools", "libhwt1", "libhwt-dev", "python3-hwt")
# A guest does not need these directories, and a disk without them is made faster.
BUILDING = ("usr/src", "usr/include", "usr/lib/gcc", "usr/share/doc", "usr/share/locale", "var/cache", "var/lib/apt", "tmp")


class Points(tap.Points):
    """TAP on standard output."""

    def check(self, name, function, *arguments):
        """Print a point that @function raises no Failed, the log if it does, and the seconds."""
        LOG.write_bytes(b"")
        begin = time.monotonic()
        error = None
        try:
            function(*arguments)
        except host.Failed as failed:
            error = failed
        self.point(name, not error, [*host.tail(LOG, 40), str(error)] if error else ())
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)


def run(*command, **options):
    """Run a command with its output in the log; raise Failed if it fails."""
    with open(LOG, "ab") as log:
        if host.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options):
            raise host.Failed(" ".join(map(str, command)))


def as_root(*command):
    run(*host.root_words(), *command)


def rooted(*command):
    """Return the words that run a command in the Debian, with a /proc of its own."""
    return [*host.root_words(), "unshare", "--mount", "--pid", "--fork", "sh", "-ec", """
mount -t proc proc "$0/proc"
mount -t devpts devpts "$0/dev/pts"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \\
	DEBIAN_FRONTEND=noninteractive chroot "$0" "$@" """, ROOT, *command]


def in_root(*command):
    run(*rooted(*command))


def expect(good, text):
    if not good:
        raise host.Failed(text)


def same_headers(release):
    """Give the Debian the headers of the guest's kernel, which may be of another version."""
    modules = ROOT / "usr/lib/modules"
    if (modules / release / "build").exists():
        return
    as_root("rm", "-rf", modules)
    as_root("mkdir", "-p", modules / release)
    as_root("cp", "-P", f"/lib/modules/{release}/build", f"/lib/modules/{release}/source", modules / release)
    for path in (Path(f"/usr/src/linux-headers-{release}"), Path(f"/usr/src/linux-headers-{release.rpartition('-')[0]}-common"),
                 *Path("/usr/lib").glob("linux-kbuild-*")):
        as_root("cp", "-a", path, f"{ROOT}{path.parent}/")


def all_files():
    """Return the Debian's files, without logs, caches, the state of dpkg, and depmod's files."""
    left_out = [f"./{name}" for name in ("proc", "dev", "run", "tmp", "var/log", "var/cache", "var/lib/dpkg", "var/lib/apt",
                                         "usr/lib/modules/*/modules.*", "var/lib/dkms/mok.*")]
    words = [word for path in left_out for word in ("-o", "-path", path)][1:]
    return set(host.output([*host.root_words(), "find", ".", "(", *words, ")", "-prune", "-o", "-print"],
                           cwd=ROOT).splitlines())


def build(version):
    """Build packages of a version, in OUT/VERSION."""
    tree = OUT / "tree"
    run(host.TOP / "tools/copy.sh", tree)
    changelog = tree / "debian/changelog"
    changelog.write_text(re.sub(r"\(.*?\)", f"({version})", changelog.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    run(tree / "tools/deb.sh", OUT / version)
    shutil.rmtree(tree)


def lint(version):
    run("lintian", "--allow-root", "--fail-on", "error", *(OUT / version).glob("*.changes"))


def library_brings_no_module(version):
    related = host.output(["dpkg-deb", "-f", *(OUT / version).glob("libhwt1_*.deb"), "Depends", "Recommends", "Suggests"])
    expect(re.findall(r"(\w+):.*\bhwt-dkms\b", related) == ["Suggests"], related)


# The commands of docs/packages.md after "make deb".
INSTALL = """
cd /tmp
sudo() { "$@" --yes --no-install-recommends; }
sudo apt install ./build/deb/hwt-dkms_*.deb ./build/deb/hwt-tools_*.deb ./build/deb/libhwt1_*.deb ./build/deb/libhwt-dev_*.deb ./build/deb/python3-hwt_*.deb
"""


def install(version):
    deb = ROOT / "tmp/build/deb"
    as_root("rm", "-rf", deb)
    as_root("mkdir", "-p", deb)
    as_root("cp", *(OUT / version).glob("*.deb"), deb)
    in_root("sh", "-ec", INSTALL)


def dkms_has(version, release):
    said = host.output(rooted("dkms", "status", "hwt"))
    expect(said == f"hwt/{version}, {release}, x86_64: installed", f"dkms status: {said}")


def built(version, release):
    """Raise Failed unless dkms has installed that version, and no other."""
    dkms_has(version, release)
    expect((ROOT / f"lib/modules/{release}/updates/dkms/hwt.ko").exists(), "there is no hwt.ko")
    link = os.readlink(ROOT / "usr/src/hwt")
    expect(link == f"hwt-{version}", f"/usr/src/hwt is {link}")


def linked():
    """Raise Failed if a guide is missing, or a link of an installed page leads nowhere."""
    for package in ("hwt-dkms", "libhwt-dev", "python3-hwt"):
        pages = sorted((ROOT / "usr/share/doc" / package).glob("**/*.md"))
        expect(pages, f"{package} has no guide")
        dead = [link for page in pages for link in documentation.dead_links(page)]
        expect(not dead, f"dead links: {dead[:20]}")


# The commands of docs/packages.md for a client, here not for the running kernel.
CLIENT = """
dkms() { command dkms "$@" -k "$0"; }
uname() { [ "$1" = -m ] && command uname -m || echo "$0"; }
export KDIR="/lib/modules/$0/build"
cp -r /usr/share/doc/hwt-dkms/examples/dkms /usr/src/hwt-first-1.0
dkms install hwt-first/1.0
modprobe -S "$0" --show-depends hwt_first | grep -q /hwt.ko
cp -r /usr/share/doc/hwt-dkms/examples/client .
cp /usr/share/doc/hwt-dkms/examples/hwt_first.c client
make -C client HWT=/usr/src/hwt SYMVERS=/var/lib/dkms/hwt/kernel-$(uname -r)-$(uname -m)/Module.symvers
[ -s client/hwt_first.ko ]
"""

PROGRAM = """
cc -Wall -Werror -o /usr/local/bin/program /tmp/program.c $(pkg-config --cflags --libs hwt)
ldd /usr/local/bin/program | grep -q libhwt.so.1
"""


def client(release):
    in_root("sh", "-ec", f"cd /tmp{CLIENT}", release)


def program():
    as_root("cp", host.TOP / "samples/libhwt_first.c", ROOT / "tmp/program.c")
    in_root("sh", "-ec", PROGRAM)


def disk():
    """Make a disk with the Debian, for a guest; return its path."""
    slim = OUT / "slim"
    as_root("cp", "-al", ROOT, slim)
    as_root("rm", "-rf", *(slim / name for name in BUILDING))
    as_root("mkdir", slim / "tmp")
    path = debian.disk(slim, OUT / "disk.ext4")
    as_root("rm", "-rf", slim)
    return path


def use(points, what, *arguments):
    """Run packages/use.sh in a guest with the Debian's disk, and print its points."""
    begin = time.monotonic()
    results = OUT / "results"
    results.unlink(missing_ok=True)
    image = disk()
    test = Test("use", "script", 300, "use.sh", noload=True, disk="packages", args=" ".join((what, *arguments)))
    with open(OUT / "use.log", "w", encoding="utf-8") as log:
        stdout, sys.stdout = sys.stdout, log
        try:
            boot.boot(kernels.find("stock"), "packages", [test], {"hwt/scripts/use.sh": HERE / "use.sh"}, tree=False,
                      programs=False, disk=image, results=results, silence=300)
        finally:
            sys.stdout = stdout
    image.unlink()
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    if not any(line.startswith("ok ") for line in lines):
        points.point(f"in a guest, {what}", False, host.tail(OUT / "use.log", 40))
    for line in lines:
        match = re.match(r"(not )?ok .*?: (.*)", line)
        if match:
            points.point(f"in a guest, {what}: {match.group(2)}", not match.group(1))
    print(f"# {time.monotonic() - begin:.1f} s", flush=True)


def purge():
    in_root("dkms", "remove", "hwt-first/1.0", "--all")
    as_root("rm", "-r", ROOT / "usr/src/hwt-first-1.0", ROOT / "usr/local/bin/program")
    in_root("apt-get", "purge", "-y", *PACKAGES)


def by_dkms(version, release):
    """Install the module from the sources by dkms, and remove it."""
    run(host.TOP / "tools/copy.sh", OUT / "hwt")
    as_root("cp", "-r", OUT / "hwt", ROOT / "tmp/hwt")
    in_root("dkms", "install", "/tmp/hwt", "-k", release)
    dkms_has(version, release)
    in_root("dkms", "remove", f"hwt/{version}", "--all")
    as_root("rm", "-r", ROOT / f"usr/src/hwt-{version}")


def nothing_left(before):
    """Raise Failed if files, dkms or dpkg differ from before. Users and groups are not compared."""
    differs = before ^ all_files()
    expect(not differs, f"new or missing files: {sorted(differs)[:20]}")
    in_root("sh", "-c", "! { dkms status | grep hwt; dpkg -l | grep hwt; }")


HAND = """
id somebody || { groupdel hwt; useradd --create-home somebody; }
echo "somebody ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/somebody
chown -R somebody /tmp/hwt
cd /tmp/hwt
exec setpriv --reuid=somebody --regid=somebody --init-groups env USER=somebody HOME=$PWD \\
	PATH=/usr/local/bin:/usr/bin:/bin "commands/packages/$0"
"""


def by_hand(release, script):
    """Install or remove by hand, as a user with sudo; scripts replace commands for the running kernel."""
    as_root("rm", "-rf", ROOT / "tmp/hwt")
    as_root("cp", "-r", OUT / "hwt", ROOT / "tmp/hwt")
    scripts = {"bin/uname": f'case $* in -r) echo "{release}" ;; *) exec /bin/uname "$@" ;; esac',
               "sbin/modprobe": f'exec /sbin/modprobe -S "{release}" --show-depends "$@"',
               "sbin/modinfo": f'exec /sbin/modinfo -k "{release}" "$@"'}
    for name, text in scripts.items():
        (OUT / "script").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        as_root("install", "-m", "755", OUT / "script", ROOT / "usr/local" / name)
    in_root("sh", "-ec", HAND, script)
    as_root("rm", *(ROOT / "usr/local" / name for name in scripts))


def packages(points):
    kernel = kernels.find("stock").get()
    release = kernel.release
    version = re.match(r"hwt \((.*)\) ", (host.TOP / "debian/changelog").read_text(encoding="utf-8")).group(1)
    ROOT.mkdir(parents=True)
    as_root("tar", "-C", ROOT, "-xf", debian.root("packages"))
    same_headers(release)
    before = all_files()

    points.check(f"packages of version {version}", build, version)
    points.check("lintian finds no error", lint, version)
    points.check("the library only suggests the module", library_brings_no_module, version)
    points.check("they are installed", install, version)
    points.check(f"dkms has built the module for {release}", built, version, release)
    points.check("links of the installed guides lead to files", linked)
    points.check("another module is built on it", client, release)
    points.check("a program is linked with libhwt", program)
    use(points, "packages", version)
    newer = f"{version}.1"
    points.check("packages of another version", build, newer)
    points.check("they take the place of the first ones", install, newer)
    points.check("dkms has built that one", built, newer, release)
    points.check("they are purged", purge)
    points.check("dkms builds the module of the sources, too", by_dkms, version, release)
    points.check("and nothing is left of it all", nothing_left, before)
    points.check("it is installed by hand, as the documentation says", by_hand, release, "by-hand.sh")
    use(points, "by-hand")
    points.check("it is removed by hand, as the documentation says", by_hand, release, "removal.sh")


# --- A newcomer's first ten minutes ----------------------------------------------------------

# The commands of CONTRIBUTING.md.
SHOW = """
make run
"""
BUILD = """
make
"""
BREAK = """
sed -i 's/hwt_tick_us = 1000;/hwt_tick_us = 2000;/' hwt_main.c
make check-guest KERNEL=stock TEST='module-params'
"""


def typed(commands):
    """Run commands as a newcomer types them, without this run's variables in the environment."""
    unset = {"HWT_BUILD", "HWT_RESULTS", "MAKEFLAGS", "MAKELEVEL"}
    run("bash", "-ec", commands, cwd=OUT / "newcomer",
        env={name: value for name, value in os.environ.items() if name not in unset})


def builds():
    typed(BUILD)
    expect((OUT / "newcomer/hwt.ko").stat().st_size, "there is no hwt.ko")


def archive():
    """Raise Failed unless the archive of the last commit is always the same, and the module builds from it."""
    made = []
    for _ in range(2):
        run("make", "dist", f"HWT_BUILD={OUT}/dist", cwd=host.TOP)
        (file,) = (OUT / "dist").glob("hwt-*.tar.gz")
        made.append(file.read_bytes())
    expect(made[0] == made[1], "the archives differ")
    run("tar", "-C", OUT / "dist", "-xf", file)
    run("make", cwd=OUT / "dist" / file.name.removesuffix(".tar.gz"))


def breaks():
    """Raise Failed unless the commands fail, and name the test and its point."""
    try:
        typed(BREAK)
    except host.Failed:
        said = LOG.read_text(encoding="utf-8", errors="replace")
        for text in ("FAIL .*stock/module-params", "ticks of 1000 us", r"\b[1-9]\d* failed\b"):
            expect(re.search(text, said), f"the output has no '{text}'")
    else:
        raise host.Failed("no test failed")


def newcomer(points):
    run(host.TOP / "tools/copy.sh", OUT / "newcomer")
    points.check("make run shows the module at its job", typed, SHOW)
    points.check("make builds hwt.ko", builds)
    points.check("make dist writes an archive, always the same, which builds", archive)
    points.check("a constant is changed: a test fails, and says which", breaks)


def main():
    host.as_root(["rm", "-rf", OUT])
    OUT.mkdir(parents=True)
    points = Points()
    try:
        packages(points)
        newcomer(points)
    finally:
        # The directory belongs to root, so no user could remove it.
        host.as_root(["rm", "-rf", ROOT, OUT / "slim"])
    shutil.rmtree(OUT / "newcomer", ignore_errors=True)
    return points.end()


if __name__ == "__main__":
    host.main(main)
