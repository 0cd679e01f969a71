# SPDX-License-Identifier: GPL-2.0-only
"""Static checks of the C files for user space."""
import functools
import threading

import checks
import host
from checks import check, files, once, problems, run


def user_files():
    """Return the C files for user space, without those for BPF. The wheel is checked as kernel code."""
    return [file for file in files(*(f"{place}/*.c" for place in (
        "tests/user", "tests/unit", "tests/fuzz", "bench/user", "bench/hot", "samples", "lib",
        "tools"))) if not file.startswith(("samples/hwt_", "tools/series/")) and not file.endswith(".bpf.c")]


@functools.lru_cache(maxsize=None)
def headers():
    """Return a hash of all headers, and of clang-tidy's configuration."""
    return checks.digest(".clang-tidy", *files("*.h"))


@check
def cppcheck():
    """cppcheck finds nothing. clang checks uninitvar, since it understands the harness's macros."""
    harness = checks.kernel_source() / "tools/testing/selftests"
    facts = checks.program("cppcheck"), headers(), str(harness)

    def look(file):
        return problems("cppcheck", "--quiet", "--enable=warning,performance,portability", "--std=c11",
                        "--error-exitcode=1", "--suppress=missingInclude", "--suppress=uninitvar",
                        f"--suppress=*:{harness}/*", "-I.", "-Ilib", "-Itests/user/lib",
                        f"-I{harness}", file)

    yield from once(look, user_files(), *facts)


@check
def clang_tidy():
    """clang-tidy finds nothing, with the configuration .clang-tidy."""
    kernel = checks.kernel_source()
    facts = checks.program("clang-tidy"), headers(), str(kernel)
    made = host.BUILD / "unit"
    yield from problems("make", "-s", "--no-print-directory", "-C", "tests/unit", f"OUT={made}", "headers",
                        f"{made}/vendor/hwt_timers.c")
    include = {"tests/unit": ["-isystem", "tests/unit/shim", "-isystem", f"{made}/include", "-isystem", f"{kernel}/tools/include",
                              "-DLIBHWT_WITH_DEVICE", f"-I{made}/vendor"],
               "tests/fuzz": ["-Itests/user/lib"],
               "tests/user": ["-Itests/user/lib", "-isystem", f"{kernel}/tools/testing/selftests"]}

    def look(file):
        place = "/".join(file.split("/")[:2])
        # The analyzer does not understand the lists. Unit tests run under ASan and UBSan instead.
        words = ["--checks=-clang-analyzer-*"] if place == "tests/unit" else []
        code, text = run("clang-tidy", "--quiet", *words, file, "--", "-std=gnu11", "-I.", "-Ilib", '-DHWTCTL_VERSION=""',
                         *include.get(place, []))
        return text.splitlines() if code else []

    # Only "make bench" makes the headers of the benchmarks. lib/timers.c compiles as vendor.sh writes it.
    yield from once(look, [file for file in user_files() if not file.startswith(("bench/", "tests/unit/shim/", "lib/timers.c"))], *facts)


# --- Benchmarks ------------------------------------------------------------------------------

_hot = threading.Lock()


def hot(target):
    """Make a target of bench/hot, one at a time, because the targets share files."""
    with _hot:
        return run("make", "-s", "--no-print-directory", "-C", "bench/hot",
                   f"KSRC={checks.kernel_source()}", target)


@check
def bench_builds():
    """The benchmarks in user space build."""
    code, text = hot("programs")
    return text.splitlines() if code or text else []


@check
def off_is_free():
    """Tracepoints and checks cost few instructions while they are off."""
    code, text = hot("off")
    return [line for line in text.splitlines() if not line.startswith("@bench")] if code else []
