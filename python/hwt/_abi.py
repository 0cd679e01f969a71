# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The part of libhwt that the package uses, with the names of its headers and of hwt_uapi.h.

tests/static/abi.py compares constants, structures and functions with them.
"""
from __future__ import annotations

import ctypes
import functools
from typing import Any

HWT_NEVER = 0xffffffffffffffff
HWT_SETUP_BOOTTIME = 0x100
HWT_SETUP_REALTIME = 0x200
HWT_SETUP_THREAD = 0x2000
HWT_SETUP_KEYS = 0x4000
HWT_MODE_FIXED_RATE = 1
HWT_MODE_FIXED_DELAY = 2
HWT_ARM_ABSOLUTE = 0x10
HWT_STATE_PENDING = 0x1
HWT_STATE_EVENT = 0x2
LIBHWT_TIMERS_BOOTTIME = 1
LIBHWT_TIMERS_REALTIME = 2

TYPES: dict[str, Any] = {
    "int": ctypes.c_int, "s32": ctypes.c_int32, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "unsigned": ctypes.c_uint, "size_t": ctypes.c_size_t, "string": ctypes.c_char_p, "pointer": ctypes.c_void_p,
    "void": None,
}


def _structure(members: str) -> Any:
    """Return a structure of members, which are of the type before them."""
    fields: list[tuple[str, Any]] = []
    kind: Any = None
    for word in members.split():
        if word in TYPES:
            kind = TYPES[word]
        else:
            fields.append((word, kind))
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


hwt_event = _structure("u64 id user_data deadline_ns fired_ns overruns u32 kind flags u64 generation reserved")
hwt_info_args = _structure("u32 size flags event_size s32 clock u64 tick_ns u32 ticks_per_wheel levels u64 now_ns "
                           "next_ns max_timeouts max_pending features max_user_timeouts u32 thread keys")
hwt_schedule_args = _structure("u32 size flags mode was u64 time_ns period_ns slack_ns user_data id generation")
hwt_get_args = _structure("u32 size flags u64 id u32 state mode u64 user_data deadline_ns remaining_ns period_ns "
                          "overruns")
hwt_list_entry = _structure("u64 id user_data deadline_ns remaining_ns period_ns overruns u32 state mode u64 reserved")
hwt_stats_args = _structure("u32 size flags u64 timeouts pending events scheduled modified cancelled expired "
                            "overruns read rejected u32 limit reserved")
libhwt_options = _structure("size_t size string device unsigned flags priority u64 tick_ns max_pending "
                            "unsigned ticks_per_wheel levels cpu")
libhwt_timers_options = _structure("size_t size unsigned flags max_run u64 granularity_ns")
libhwt_timer = _structure("u64 linked pointer reserved reserved2 u64 deadline order pointer fn")

# What functions return and take.
FUNCTIONS = {
    "void pointer": "libhwt_close",
    "u64 pointer": "libhwt_now",
    "int pointer": "libhwt_fd libhwt_cancel_all",
    "int pointer pointer": "libhwt_open libhwt_info libhwt_stats libhwt_schedule",
    "int pointer u64": "libhwt_cancel",
    "int pointer u64 pointer": "libhwt_get",
    "int pointer u64 u64": "libhwt_modify libhwt_modify_at",
    "int pointer pointer unsigned u64": "libhwt_next",
    "int pointer pointer pointer unsigned": "libhwt_list",
}


# Those of timers in the process. They are short, and call back, so they are called with the interpreter's lock.
TIMERS = {
    "void pointer": "libhwt_timers_free",
    "void pointer pointer u64": "libhwt_timer_link",
    "int pointer": "libhwt_timers_fd libhwt_timers_wait_ms",
    "unsigned pointer": "libhwt_timers_run",
    "pointer pointer": "libhwt_timers_new",
}


def _load(kind: Any, functions: dict[str, str]) -> Any:
    lib = kind("libhwt.so.1", use_errno=True)
    for types, names in functions.items():
        for name in names.split():
            function = getattr(lib, name)
            function.restype, *function.argtypes = [TYPES[word] for word in types.split()]
    return lib


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Load libhwt, once. OSError: it is not installed."""
    lib: ctypes.CDLL = _load(ctypes.CDLL, FUNCTIONS)
    return lib


@functools.lru_cache(maxsize=None)
def timers() -> ctypes.PyDLL:
    """Load the timers of libhwt, as library()."""
    lib: ctypes.PyDLL = _load(ctypes.PyDLL, TIMERS)
    return lib
