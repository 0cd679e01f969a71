# SPDX-License-Identifier: GPL-2.0-only
"""Installs Debian packages, or fetches them from this or another suite and unpacks them."""

import re
import subprocess
import threading
import time
from pathlib import Path

import host

# Longest wait for another apt. apt-get waits for dpkg's lock, but not for that of the lists.
LOCK_SECONDS = 300
# refresh() keeps package lists that are younger than this.
FRESH_SECONDS = 3600

# --- Packages of this system -----------------------------------------------------------------


def missing(packages):
    """Return those packages that are not installed, each once."""
    packages = list(dict.fromkeys(packages))
    said = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *packages],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    states = dict(line.split()[:2] for line in said.stdout.splitlines())
    return [package for package in packages if states.get(package, "un")[1] != "i"]


def install(*packages):
    """Install the packages that are missing."""
    if not host.have("dpkg-query"):
        raise host.Failed("this set-up is for Debian: dpkg-query not found")
    if not missing(packages):
        return
    with host.lock("packages"):
        words = missing(packages)
        if not words:
            return
        # The package lists of a new machine are empty.
        known = subprocess.run(["apt-get", "-s", "-qq", "--no-install-recommends", "install", *words],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if known.returncode:
            update()
        # Old lists name versions that the server no longer has.
        twice(lambda: _install(words), f"installing {' '.join(words)}")


def _install(packages):
    # No sync after each file: the packages can be installed again.
    host.logged(host.CACHE / "apt-install.log", "installing: " + " ".join(packages),
                host.root_words() + ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y",
                                     "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}",
                                     "-o", "Dpkg::Options::=--force-unsafe-io",
                                     "--no-install-recommends", "install", *packages])


def twice(function, what):
    """Call a function. If it fails, fetch the package lists and call the function again."""
    try:
        return function()
    except host.Failed:
        fetched = update()
    try:
        return function()
    except host.Failed as error:
        if fetched:
            raise
        raise host.Failed(f"{what}: the package server does not answer: check the network") \
            from error


_updating = threading.Lock()


def update():
    """Fetch the package lists; return whether all were fetched."""
    log = host.CACHE / "apt-update.log"
    command = host.root_words() + ["apt-get", "-o", "APT::Update::Error-Mode=any", "update"]
    end = time.monotonic() + LOCK_SECONDS
    with _updating:
        while True:
            try:
                host.logged(log, "apt-get update", command)
                (host.CACHE / ".apt-updated").touch()
                return True
            except host.Failed:
                if "Could not get lock" not in log.read_text(errors="replace") \
                        or time.monotonic() > end:
                    host.say("some package lists cannot be fetched; continuing with the others")
                    return False
            time.sleep(5)


def refresh():
    """Fetch the package lists unless they are recent."""
    try:
        age = time.time() - (host.CACHE / ".apt-updated").stat().st_mtime
    except FileNotFoundError:
        age = FRESH_SECONDS
    if not 0 <= age < FRESH_SECONDS:
        update()


# --- Packages that are only fetched ----------------------------------------------------------


def version(package):
    """Return the version of an installed package, or None."""
    if missing([package]):
        return None
    return host.output(["dpkg-query", "-W", "-f", "${Version}", package])


def depends(package, options=()):
    """Return the names of the packages that a package depends on."""
    said = host.output(["apt-cache", *options, "depends", package])
    return re.findall(r"^ *Depends: ([^:<>\s]+)", said, re.M)


def download(directory, packages, options=()):
    """Fetch packages, and return their files."""
    directory.mkdir(parents=True, exist_ok=True)
    def fetch():
        host.logged(f"{directory}.log", f"fetching {' '.join(packages)}",
                    ["apt-get", *options, "download", *packages], cwd=directory)
    if options:
        fetch()
    else:
        twice(fetch, f"fetching {' '.join(packages)}")
    return sorted(directory.glob("*.deb"))


def extract(deb, directory, *members):
    """Unpack a package's files, or only those that match the patterns, into a directory."""
    archive = host.start(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    try:
        options = ["--wildcards", *members] if members else []
        code = host.run(["tar", "-C", directory, "-x", *options], stdin=archive.stdout)
        archive.stdout.close()
        if code or archive.wait():
            raise host.Failed(f"{Path(deb).name} could not be unpacked")
    finally:
        host.finished(archive)


def codename():
    """Return the name of the distribution's release."""
    found = re.search(r"^VERSION_CODENAME=(.*)", Path("/etc/os-release").read_text(), re.M)
    if not found:
        raise host.Failed("this set-up is for Debian: /etc/os-release has no VERSION_CODENAME")
    return found[1]


def sources(directory, suite):
    """Write the system's package sources, changed to another suite, to a directory.

    @suite: its name, "-SUFFIX" for the system's suite with a suffix, or "" for the system's suite
    with its updates. Return the suite's name and the files.
    """
    own = codename()
    old, new = (re.escape(own), own + suite) if suite.startswith("-") else (re.escape(own), suite)
    if not suite:
        old = f"{own}(?:-updates|-security)?"
    directory.mkdir()
    files = {}
    parts = Path("/etc/apt/sources.list.d")
    for path in sorted(parts.glob("*.sources")):
        stanzas = re.split(r"\n\s*\n", path.read_text())
        files[path.name] = "\n\n".join(
            re.sub(r"(?m)^Suites:.*$", f"Suites: {new}", stanza) if new else stanza
            for stanza in stanzas if re.search(rf"(?m)^Suites:(?:.*[ \t])?{old}(?:[ \t]|$)", stanza))
    for path in [Path("/etc/apt/sources.list"), *sorted(parts.glob("*.list"))]:
        lines = path.read_text().splitlines() if path.exists() else []
        files[path.name] = "\n".join(
            re.sub(rf"(\s){old}(\s)", rf"\g<1>{new}\g<2>", line, count=1) if new else line
            for line in lines if re.search(rf"^deb\s.*\s{old}\s", line))
    written = []
    for name, text in files.items():
        if text.strip():
            written.append(directory / name)
            written[-1].write_text(text.strip("\n") + "\n")
    return new or own, written


class Suite:
    """The packages of another suite or architecture: fetched and unpacked, not installed.

    The system's own lists, pins and preferences are neither used nor changed, so root is not
    needed.
    """

    def __init__(self, directory, suite, arch=None):
        """Fetch the package lists to a directory. @suite is as for sources()."""
        self.directory = directory
        for name in ("lists/partial", "cache/archives/partial"):
            (directory / name).mkdir(parents=True)
        self.name, _ = sources(directory / "sources", suite)
        arch = arch or host.output(["dpkg", "--print-architecture"])
        self.options = [word for option in (
            "Dir::Etc::sourcelist=/dev/null", f"Dir::Etc::sourceparts={directory}/sources",
            f"Dir::State::Lists={directory}/lists", f"Dir::Cache={directory}/cache",
            "Dir::State::status=/dev/null", "APT::Default-Release=",
            "Dir::Etc::preferences=/dev/null", "Dir::Etc::preferencesparts=/dev/null",
            "Acquire::Languages=none", f"APT::Architecture={arch}", f"APT::Architectures={arch}",
        ) for word in ("-o", option)]
        try:
            host.logged(directory / "update.log", f"fetching the list of {self.name}",
                        ["apt-get", *self.options, "update"])
        except host.Failed:
            # Third-party sources may not have this suite.
            host.say(f"some package lists of {self.name} cannot be fetched; continuing with the others")
        if not any((directory / "lists").glob("*_Packages*")):
            raise host.Unavailable(f"{self.name} cannot be fetched: check the network")

    def depends(self, package):
        """Return the names of the packages that a package depends on."""
        return depends(package, self.options)

    def names(self, prefix):
        """Return the names of all packages that begin with a prefix."""
        return host.output(["apt-cache", *self.options, "pkgnames", prefix]).split()

    def download(self, *packages):
        """Fetch packages, and return their files."""
        return download(self.directory / "deb", packages, self.options)
