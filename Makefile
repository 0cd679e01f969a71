# SPDX-License-Identifier: GPL-2.0-only
#
# hwt: a timing wheel for many coarse timeouts. "make help" lists the targets.

# The kernel to build against: the running one, else the newest installed.
newest = $(shell ls -d $(1) 2>/dev/null | grep -v -e -rt- -e -cloud- | sort -V | tail -n 1)
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(call newest,/lib/modules/*/build) $(call newest,/usr/src/linux-headers-*64))

# For check-guest, check-coverage and soak. HWT_TESTS=1 also builds samples, bench and tests/torture,
# and tests/kernel if HWT_KSELFTEST is set (see Kbuild); HWT_TESTS=samples builds only samples.
KERNEL ?= stock
TEST ?=
QUICK ?=

# For soak: its duration in hours, and parameters of hwt_torture.ko.
HOURS ?= 2
SOAK ?=

# For install-man.
PREFIX ?= /usr/local
MANDIR ?= $(PREFIX)/share/man
OUT = $(abspath $(or $(HWT_BUILD),build))
MAN = $(OUT)/man

all: modules

modules: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

# depmod wants UTS_RELEASE: include/config/kernel.release of Debian's headers has another name.
install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install
	depmod -a $$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' $(KDIR)/include/generated/utsrelease.h)

# The pages of the interfaces are made from the comments in the headers and sources.
# lib/Makefile makes and installs those of libhwt.
man: $(MAN)/made
	$(MAKE) -C lib O=$(OUT)/lib man

$(MAN)/made: man/generate.py $(wildcard man/*.in) docs/parameters.md hwt.h hwt_uapi.h $(wildcard hwt_*.c core/*.c)
	rm -rf $(MAN)
	man/generate.py $(MAN) 4 9
	touch $@

install-man: man
	for page in man/*.[18] $(MAN)/*.[49]; do \
		install -D -m 644 $$page \
			$(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; \
	done
	$(MAKE) -C lib O=$(OUT)/lib DESTDIR= MANDIR=$(abspath $(DESTDIR)$(MANDIR)) install-man

tools:
	$(MAKE) -C tools OUT=$(OUT)/tools

install-tools:
	$(MAKE) -C tools OUT=$(OUT)/tools install

lib:
	$(MAKE) -C lib O=$(OUT)/lib

# The timers of libhwt, as two files for programs that depend on no library.
vendor:
	lib/vendor.sh $(or $(DIR),$(OUT)/vendor)
	@echo '$(or $(DIR),$(OUT)/vendor): hwt_timers.c, hwt_timers.h'

install-lib:
	$(MAKE) -C lib O=$(OUT)/lib install

# Packages of the source tree as it is, committed or not, in build/deb.
deb:
	@tools/deb.sh

# The sources of the last commit; the same commit makes the same file.
version := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
dist: $(OUT)
	git archive --prefix=hwt-$(version)/ HEAD | gzip -9n >$(OUT)/hwt-$(version).tar.gz
	@cd $(OUT) && sha256sum hwt-$(version).tar.gz

$(OUT):
	mkdir -p $@

# Patches for the source of a kernel, in build/series/patches.
series: python
	$(if $(LINUX),,$(error make series LINUX=DIR, the unpacked source of a kernel))
	@tests/vm/setup.py series
	@tools/series/series.py '$(LINUX)' $(OUT)/series/patches

clean:
	rm -rf build tests/*/build lib/build
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) HWT_TESTS=1 clean)

kdir:
	$(if $(wildcard $(KDIR)/Makefile),, \
		$(error no kernel headers in KDIR="$(KDIR)": "make setup" installs them))

# The targets below run scripts in Python, which install their other requirements.
python:
	@command -v python3 >/dev/null || { \
		echo "[hwt] installing python3" >&2; \
		[ "$$(id -u)" -eq 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq python3 >/dev/null; }

setup: python
	@tests/vm/setup.py check

clean-cache: python
	@tests/vm/cache.py clean

run: python
	@commands/demo.py

# The commands and arguments are passed on without expansion by make.
unexport RUN ARGS
shell: export HWT_RUN := $(value RUN)
shell: export HWT_ARGS := $(value ARGS)
shell: export HWT_HERE := $(PWD)
shell: python
	@commands/shell.py

check: python
	@tests/run.py check

check-all: python
	@tests/run.py all

check-here: python
	@commands/here.py $(if $(YES),--yes) "$(or $(TEST),*)"

# Each runs one job of check-all; "tests/run.py list" prints the names of the jobs.
check-static check-wheel check-libhwt check-verify check-plants check-convert check-series check-packages check-year check-shell check-harness: python
	@tests/run.py $(@:check-%=%)

check-guest: python
	@tests/run.py guest $(KERNEL) --pattern '$(or $(TEST),*)' $(if $(filter-out 0,$(QUICK)),--quick) --append '$(HWT_APPEND)'

check-matrix: python
	@tests/vm/matrix.py $(if $(filter-out 0,$(QUICK)),--quick) $(CELLS)

check-coverage: python
	@tests/vm/coverage.py $(if $(filter-out 0,$(QUICK)),--quick) --kernels '$(KERNELS)' --pattern '$(TEST)'

times: python
	@tests/run.py times

fuzz: python
	@MINUTES='$(MINUTES)' SEED='$(SEED)' PROGRAM='$(PROGRAM)' AGAIN='$(AGAIN)' tests/fuzz/fuzz.py

soak: python
	@tests/torture/soak.py --kernel $(KERNEL) $(HOURS) $(SOAK)

bench: python
	@bench/bench.py

bench-quick: python
	@bench/bench.py --quick --only ops,life,late,count

# Compare one engine with one for each CPU: first in user space, then in a guest with CPUS and
# NODES, or on this kernel with HERE=1.
bench-scale: python
	@bench/bench.py --only scale $(if $(filter-out 0,$(QUICK)),--quick) $(if $(HERE),--here) $(if $(YES),--yes) \
		$(if $(CPUS),--cpus $(CPUS)) $(if $(NODES),--nodes $(NODES))

help:
	@echo 'make              build hwt.ko (KDIR=$(KDIR))'
	@echo 'make install      install it for that kernel'
	@echo 'make install-man  install the manual pages to MANDIR=$(MANDIR)'
	@echo 'make tools        build hwtctl, the command line of /dev/hwt'
	@echo 'make install-tools  ... install it, its completions and a udev rule (PREFIX, DESTDIR)'
	@echo 'make lib          build libhwt, the C library'
	@echo 'make vendor       write its timers as two files, hwt_timers.[ch], for any program [DIR=...]'
	@echo 'make install-lib  ... install it and its manual pages (PREFIX, DESTDIR)'
	@echo 'make deb          build Debian packages in build/deb'
	@echo 'make dist         write the sources of the last commit to build/hwt-$(version).tar.gz'
	@echo 'make series LINUX=DIR  make patches for the source of a kernel in DIR, in build/series/patches'
	@echo 'make clean        remove what was built'
	@echo
	@echo 'make run          show the module at its job, in a virtual machine'
	@echo 'make shell [KERNEL=stock|rt|stock612]  open a root shell in a virtual machine with hwt loaded'
	@echo "  also: PROGRAM='./a.out ...' ARGS= MODULE='./x.ko n=1 ...' RUN='commands' PARAMS='debug=1' CPUS= MEMORY="
	@echo 'make check        run the tests that every change needs; ends with "N passed, N failed"'
	@echo 'make check-all    run all tests; make check-matrix: on all kernels'
	@echo 'make check-here   run tests on the kernel of this machine (root; asks first; YES=1)'
	@echo 'make check-guest KERNEL=stock|rt|debug|... [TEST="name|name"] [QUICK=1]'
	@echo 'make check-static, -wheel, -libhwt, -verify, -plants, -convert, -series, -packages, -year, -shell, -harness: a job of check-all'
	@echo 'make check-matrix [CELLS="6.1 6.12-rt"] [QUICK=1]'
	@echo 'make check-coverage  count the lines of hwt.ko that the tests reach, in the debug guests'
	@echo 'make times        list the slowest tests of the last run'
	@echo 'make fuzz [MINUTES=n]  run generated system calls on the debug kernel'
	@echo "make soak HOURS=n run the torture in a guest (KERNEL=name, or uml; SOAK='seed=7 ...')"
	@echo 'make bench        measure, against timer_list, hrtimer, timerfd and others; forty minutes'
	@echo 'make bench-quick  measure most of it, in two minutes'
	@echo 'make bench-scale  measure throughput of 1 to all CPUs, with one engine and with one for each [CPUS=n] [NODES=n] [HERE=1]'
	@echo 'make setup        install the requirements of make check (each target installs its own)'
	@echo 'make clean-cache  remove unused kernels from the cache'
	@echo
	@echo 'See tests/README.md for more.'

.PHONY: python all modules deb series install tools install-tools man install-man lib vendor install-lib dist clean clean-cache kdir setup run shell help fuzz soak \
	bench bench-quick bench-scale times check check-all check-here check-static check-wheel check-libhwt check-verify check-plants \
	check-convert check-series check-packages check-year check-shell check-harness check-guest check-matrix check-coverage
