# SPDX-License-Identifier: GPL-2.0-only
#
# hwt: a timing wheel for many coarse timeouts. "make help" lists the targets.

# The kernel to build against: the running one, else the newest installed.
newest = $(shell ls -d $(1) 2>/dev/null | grep -v -e -rt- -e -cloud- | sort -V | tail -n 1)
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(call newest,/lib/modules/*/build) $(call newest,/usr/src/linux-headers-*64))

# KERNEL and TEST: for check-guest. HWT_TESTS=1 builds samples and test modules.
KERNEL ?= stock
TEST ?=
QUICK ?=

all: modules

modules: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install
	depmod -a $$(cat $(KDIR)/include/config/kernel.release)

clean:
	rm -rf build tests/*/build
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) HWT_TESTS=1 clean)

kdir:
	$(if $(wildcard $(KDIR)/Makefile),, \
		$(error no kernel headers in KDIR="$(KDIR)": "make setup" installs them))

setup:
	@tests/setup.sh check

run:
	@tests/run.sh

check:
	@tests/check.sh all

check-quick:
	@tests/check.sh quick

check-static:
	@tests/check.sh static

check-wheel:
	@tests/check.sh wheel

check-model:
	@tests/check.sh model

check-guest:
	@QUICK=$(QUICK) TEST='$(TEST)' tests/check.sh guest $(KERNEL)

check-harness:
	@tests/check.sh harness

check-year:
	@tests/check.sh year

bench:
	@tests/bench/bench.sh

bench-quick:
	@tests/bench/bench.sh --quick --only ops,life,late,count

bench-java:
	@tests/bench/bench.sh --only java

help:
	@echo 'make              build hwt.ko (KDIR=$(KDIR))'
	@echo 'make install      install it for that kernel'
	@echo 'make clean        remove what was built'
	@echo
	@echo 'make run          show the module at its job, in a virtual machine'
	@echo 'make check        all tests; ends with "N passed, N failed"'
	@echo 'make check-quick  the short ones, under a minute'
	@echo 'make check-static, check-wheel, check-model, check-harness, check-year'
	@echo 'make check-guest KERNEL=stock|rt|debug [TEST=pattern] [QUICK=1]'
	@echo 'make bench        measure, against timer_list, hrtimer, timerfd and others; forty minutes'
	@echo 'make bench-quick  the most of it, in two minutes; make bench-java: Netty and the JDK'
	@echo 'make setup        install and fetch what the tests need (run and check do)'
	@echo
	@echo 'More in tests/README.md.'

.PHONY: all modules install clean kdir setup run help bench bench-quick bench-java \
	check check-quick check-static check-wheel check-model check-guest check-harness check-year
