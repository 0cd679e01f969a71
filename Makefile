# SPDX-License-Identifier: GPL-2.0-only
#
# hwt: a timing wheel for many coarse timeouts. "make help" lists the targets.

# The kernel to build against: the running one, else the newest installed.
newest = $(shell ls -d $(1) 2>/dev/null | grep -v -e -rt- -e -cloud- | sort -V | tail -n 1)
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(call newest,/lib/modules/*/build) $(call newest,/usr/src/linux-headers-*64))

# KERNEL and TEST: for check-guest. HWT_TESTS=1 builds samples and test modules, too; those that
# want kselftest only with HWT_KSELFTEST (Kbuild).
KERNEL ?= stock
TEST ?=
QUICK ?=

# For soak: how long, and parameters of hwt_torture.ko.
HOURS ?= 2
SOAK ?=

# For install-man.
PREFIX ?= /usr/local
MANDIR ?= $(PREFIX)/share/man
MAN9 = $(or $(HWT_BUILD),build)/man

all: modules

modules: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

# Debian's headers have another name in include/config/kernel.release.
install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install
	depmod -a $$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' $(KDIR)/include/generated/utsrelease.h)

# hwt(9)'s pages for functions and types are made from the comments in the sources.
man: $(MAN9)/made

$(MAN9)/made: man/generate.sh man/hwt.9 hwt.h $(wildcard hwt_*.c) | kdir
	man/generate.sh $(KDIR)/scripts/kernel-doc $(abspath $(MAN9))
	touch $@

# Those of libhwt go by several names each: its own Makefile knows.
install-man: man
	for page in man/*.[!3] $(MAN9)/*.9; do \
		install -D -m 644 $$page \
			$(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; \
	done
	$(MAKE) -C lib DESTDIR= MANDIR=$(abspath $(DESTDIR)$(MANDIR)) install-man

tools:
	$(MAKE) -C tools OUT=$(CURDIR)/build/tools

install-tools:
	$(MAKE) -C tools OUT=$(CURDIR)/build/tools install

lib:
	$(MAKE) -C lib O=$(CURDIR)/build/lib

install-lib:
	$(MAKE) -C lib O=$(CURDIR)/build/lib install

# Of what is here now, committed or not; in build/deb.
deb:
	@tools/deb.sh

clean:
	rm -rf build tests/*/build lib/build
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

check-litmus:
	@tests/check.sh litmus

check-lib:
	@tests/check.sh lib

check-packages:
	@tests/check.sh packages

check-documented:
	@tests/check.sh documented

check-guest:
	@QUICK=$(QUICK) TEST='$(TEST)' tests/check.sh guest $(KERNEL)

check-matrix:
	@tests/setup.sh guest
	@QUICK=$(QUICK) tests/matrix.sh $(CELLS)

check-coverage:
	@tests/setup.sh coverage
	@KERNEL='$(KERNELS)' QUICK=$(QUICK) TEST='$(TEST)' tests/vm/coverage/coverage.sh

check-harness:
	@tests/check.sh harness

check-year:
	@tests/check.sh year

fuzz:
	@MINUTES='$(MINUTES)' SEED='$(SEED)' PROGRAM='$(PROGRAM)' AGAIN='$(AGAIN)' tests/fuzz/run.sh

soak:
	@tests/setup.sh guest
	@KERNEL=$(KERNEL) tests/torture/soak.sh $(HOURS) $(SOAK)

bench:
	@bench/bench.sh

bench-quick:
	@bench/bench.sh --quick --only ops,life,late,count

bench-java:
	@bench/bench.sh --only java

help:
	@echo 'make              build hwt.ko (KDIR=$(KDIR))'
	@echo 'make install      install it for that kernel'
	@echo 'make install-man  the manual pages, to MANDIR=$(MANDIR)'
	@echo 'make tools        build hwtctl, the command line of /dev/hwt'
	@echo 'make install-tools  ... install it, its manual page and a udev rule (PREFIX, DESTDIR)'
	@echo 'make lib          build libhwt, the C library for /dev/hwt'
	@echo 'make install-lib  ... install it and its manual pages (PREFIX, DESTDIR)'
	@echo 'make deb          Debian packages, to build/deb'
	@echo 'make clean        remove what was built'
	@echo
	@echo 'make run          show the module at its job, in a virtual machine'
	@echo 'make check        all tests; ends with "N passed, N failed"'
	@echo 'make check-quick  the short ones, some minutes'
	@echo 'make check-static, check-wheel, check-model, check-litmus, check-lib, check-packages, check-documented, check-harness, check-year'
	@echo 'make check-guest KERNEL=stock|rt|debug|... [TEST=pattern] [QUICK=1]'
	@echo 'make check-matrix [CELLS="6.1 6.12-rt"] [QUICK=1]'
	@echo 'make check-coverage  what the tests reach of hwt.ko, counted in the debug guests'
	@echo 'make fuzz [MINUTES=n]  system calls of programs that nobody wrote, on the debug kernel'
	@echo "make soak HOURS=n torture in a guest (KERNEL=name, or uml; SOAK='seed=7 ...'), with a verdict"
	@echo 'make bench        measure, against timer_list, hrtimer, timerfd and others; forty minutes'
	@echo 'make bench-quick  the most of it, in two minutes; make bench-java: Netty and the JDK'
	@echo 'make setup        install and fetch what the tests need (run and check do)'
	@echo
	@echo 'More in tests/README.md.'

.PHONY: all modules deb install tools install-tools man install-man lib install-lib clean kdir setup run help fuzz soak bench bench-quick bench-java \
	check check-quick check-static check-wheel check-model check-litmus check-lib check-packages check-documented check-guest check-matrix check-coverage check-harness check-year
