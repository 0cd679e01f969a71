#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs kt_year.ko, a year in seconds: under User Mode Linux, whose time jumps while it is idle.

year.py [PARAMETER=VALUE...]: parameters of kt_year.ko.
"""

import os
import sys

import boot
import host
import kernels
from listing import Test

# Noon on the last day of 2027, because 2028 is a leap year.
START_NS = 1830254400 * 10**9


def main():
    def show(line, kernel):
        if kernel and "kt_year: " in line:
            print("    " + line.partition("kt_year: ")[2].rstrip(), flush=True)

    test = Test("kt_year", "module", 0, "kt_year.ko", args=" ".join(sys.argv[1:]))
    good = boot.boot(kernels.find("uml"), "year", [test], tree="uml-plain", ktests=True,
                     words=["HWT_KTESTS=lib/kt_year.o"], programs=False, label="year",
                     results=os.environ.get("HWT_RESULTS"), watch=show, silence=300, limit=1800, memory="512M",
                     # Time stands still while a process computes.
                     append=["time-travel=inf-cpu", f"time-travel-start={START_NS}"])
    return 0 if good else 1


if __name__ == "__main__":
    host.main(main)
