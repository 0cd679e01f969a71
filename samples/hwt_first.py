#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A first program with hwt for Python."""
import hwt

with hwt.open() as context:
    context.after(0.5, 42)
    context.every(0.2, 7)
    for number, event in enumerate(context, 1):
        print("an event for", event.user_data)
        if number == 5:
            break
