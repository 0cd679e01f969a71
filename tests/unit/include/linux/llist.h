/* SPDX-License-Identifier: GPL-2.0-only */
/* The wheel never looks at the submission lists: hwt.h only needs the size. */
#ifndef _SHIM_LINUX_LLIST_H
#define _SHIM_LINUX_LLIST_H

struct llist_node {
	struct llist_node *next;
};

#endif /* _SHIM_LINUX_LLIST_H */
