# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's headers in user space, for Makefiles of programs that contain parts of hwt. Needs
# KSRC and OUT, and the files of hwt in "sources". Targets with these files need $(shims) as an
# order-only prerequisite, and $(shim-include) as an option.

shim-dir := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

# Each kernel header that hwt includes becomes shim.h, except those for which tools/include or
# the system has a suitable one.
have := $(patsubst %,linux/%.h,bitmap bitops bits build_bug err errno hash kernel list log2 \
	overflow string types version)
wanted := $(shell sed -n 's,^\#include <\(\(linux\|trace\)/.*\.h\)>.*,\1,p' $(sources))
shims := $(addprefix $(OUT)/include/, linux/container_of.h linux/llist.h \
	$(filter-out $(have) linux/llist.h,$(sort $(wanted))))
shim-include := -isystem $(shim-dir) -isystem $(OUT)/include -isystem $(KSRC)/tools/include

$(filter-out %/llist.h,$(shims)): $(MAKEFILE_LIST)
	@mkdir -p $(@D)
	@echo '#include "shim.h"' >$@

$(OUT)/include/linux/llist.h: $(MAKEFILE_LIST)
	@mkdir -p $(@D)
	@echo '#include "$(KSRC)/include/linux/llist.h"' >$@

# For tools that only parse the sources.
headers: $(shims)

.PHONY: headers
