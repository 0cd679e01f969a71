# SPDX-License-Identifier: GPL-2.0-only
#
# For Makefiles of programs that have parts of hwt in them: the kernel's headers in user space.
# Needs KSRC and OUT, and in "sources" the files of hwt. A target that includes them depends on
# $(shims), in that order only, and is compiled with $(shim-include).

shim-dir := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

# Each kernel header that hwt includes is shim.h, but for those that tools/include or
# the system have as they are needed.
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

# For what only reads the sources.
headers: $(shims)

.PHONY: headers
