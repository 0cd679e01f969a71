#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lib.sh: libhwt as something that is built, installed, compiled and linked against. Prints TAP.
# What it does is tested in guests: tests/user/lib_*.c.
set -eu
. "$(dirname "$0")/../lib.sh"

cd "$HWT_TOP"
out=$HWT_BUILD/check-lib
root=$out/root
prefix=/opt/hwt
include=$root$prefix/include
lib=$root$prefix/lib
man=$root$prefix/share/man
n=0

# point TEXT CMD...: passes if the command succeeds.
point()
{
	local text=$1
	shift
	n=$((n + 1))
	if "$@" >"$out/log" 2>&1; then
		echo "ok $n - $text"
	else
		echo "not ok $n - $text"
		sed 's/^/# /' "$out/log" | head -n 20
	fi
}

# same FILE FILE: lists of names; shows the difference.
same() { [ -s "$1" ] && diff "$1" "$2"; }

build() { make -s -C lib O="$out/$1" CFLAGS="-O2 -Werror ${*:2}"; }
build_clang() { make -s -C lib O="$out/clang" CC=clang-14 CFLAGS="-O2 -Werror" static; }
install_all() { make -s -C lib O="$out/build" DESTDIR="$root" PREFIX="$prefix" install; }

# Alone, in each language; what the programs of the guests do not show.
header()
{
	printf '#include "libhwt.h"\nstruct libhwt_options options;\n' |
		"$1" -x "$2" "-std=$3" -Wall -Wextra -Wpedantic -Werror -Ilib -I. -fsyntax-only -
}

cxx()
{
	g++ "-std=$1" -O2 -Wall -Wextra -Wpedantic -Werror -Ilib -I. -o "$out/cxx" \
		tests/unit/libhwt_cxx.cc -L"$out/build" -lhwt && LD_LIBRARY_PATH=$out/build "$out/cxx"
}

declared() { grep -oE '\blibhwt_[a-z_]+\(' lib/libhwt.h | grep -v '()' | tr -d '(' | sort -u; }
listed() { sed -n 's/^\t\(libhwt_[a-z_]*\);$/\1/p' lib/libhwt.map | sort; }
exported() { nm -D --defined-only "$out/build/libhwt.so" | sed -n 's/.* T \([^@]*\).*/\1/p' | sort; }
# In the manual a function is named in the NAME section of its page.
described() { sed -n '/^\.SH NAME/,/^\.SH LIBRARY/p' man/libhwt*.3 | grep -oE 'libhwt_[a-z_]+' | sort -u; }

versions()
{
	nm -D --defined-only "$out/build/libhwt.so" | grep ' T ' >"$out/names"
	[ -s "$out/names" ] && ! grep -v '@@LIBHWT_1\.0$' "$out/names"
}

soname()
{
	readelf -d "$out/build/libhwt.so" >"$out/dynamic"
	grep -q 'SONAME.*\[libhwt\.so\.1\]' "$out/dynamic" &&
		[ "$(grep -c NEEDED "$out/dynamic")" = 1 ] && grep -q 'NEEDED.*\[libc\.so\.6\]' "$out/dynamic" &&
		! grep -q TEXTREL "$out/dynamic"
}

# Who links it statically gets no name that is not its own, and no variables.
static_names()
{
	nm --defined-only "$out/build/libhwt.a" | grep ' [A-Z] ' >"$out/names"
	[ -s "$out/names" ] && ! grep -vE ' T (libhwt|hwtlib)_[a-z_]+$' "$out/names" &&
		! nm "$out/build/libhwt.a" | grep -E ' [bBdDC] '
}

files_installed()
{
	local file
	for file in "$include/libhwt.h" "$include/hwt_uapi.h" "$lib/libhwt.a" "$lib/libhwt.so" \
		"$lib/libhwt.so.1" "$lib/pkgconfig/hwt.pc" "$man/man3/libhwt.3"; do
		[ -s "$file" ] || { echo "$file is not there"; return 1; }
	done
	[ "$(readlink "$lib/libhwt.so.1")" = libhwt.so.1.0.0 ] &&
		! grep -rIn '@[A-Z]*@' "$lib/pkgconfig"
}

config() { PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$lib/pkgconfig pkg-config "$@" hwt; }

config_says()
{
	[ "$(config --modversion)" = 1.0.0 ] &&
		[ "$(config --libs-only-L)" = "-L$lib " ] && [ "$(config --libs-only-l)" = "-lhwt " ] &&
		config --cflags | grep -qF -- "-I$include" &&
		config --static --libs | grep -q -- -pthread
}

# A program in a directory of its own, which knows of the library what pkg-config says.
# No device here: it is to say so, and end.
# shellcheck disable=SC2046 # words
program()
{
	mkdir -p "$out/program"
	cp samples/libhwt_first.c "$out/program/first.c"
	(cd "$out/program" && cc -Wall -Werror $(config --cflags) -o first first.c "$@")
}

ends() { [ -c /dev/hwt ] || [ "$("$@" 2>&1)" = "/dev/hwt: No such file or directory" ]; }

# shellcheck disable=SC2046 # words
program_shared()
{
	program $(config --libs) && ends env LD_LIBRARY_PATH="$lib" "$out/program/first" &&
		readelf -d "$out/program/first" | grep -q 'NEEDED.*\[libhwt\.so\.1\]'
}

# shellcheck disable=SC2046 # words
program_static() { program -static $(config --static --libs) && ends "$out/program/first"; }

# Each function has a page under its own name.
pages()
{
	local name
	while read -r name; do
		LC_ALL=C.UTF-8 man -M "$man" 3 "$name" | grep -qF "$name(" || { echo "$name"; return 1; }
	done < <(declared)
}

# The prototypes in the manual, as it is read, are those of the header, but for line breaks.
prototypes() { tr -s ' \n\t' ' ' | grep -oE '(int|void|uint64_t) libhwt_[a-z_]+\([^;]*\);' | sort; }
of_header() { sed -n '/^[a-z].*(/,/;$/p' lib/libhwt.h | prototypes; }
of_manual()
{
	local page
	for page in man/libhwt_*.3; do
		LC_ALL=C.UTF-8 MANWIDTH=80 man -l "$page" | col -bx |
			sed -n '/^SYNOPSIS/,/^DESCRIPTION/p'
	done | prototypes
}

# libhwt(3) shows a program that is there.
example()
{
	sed -n '/^\.SH EXAMPLES/,/^\.EE/p' man/libhwt.3 | sed -e '/^\./d' -e 's/\\en/\\n/g' -e 's/\\-/-/g' >"$out/example"
	sed -n '/^#include/,$p' samples/libhwt_first.c | same "$out/example" -
}

# sanitizer NAME SANITIZERS [SED-SCRIPT]: builds $out/NAME of threads.c and the library, of which
# the script may break queue.c.
sanitizer()
{
	local dir=$out/$1.dir call calls=() flags=(-std=gnu11 -O1 -g "-fsanitize=$2" -pthread)
	for call in open close ioctl read ppoll mmap munmap; do
		calls+=("-D$call=fake_$call")
	done
	mkdir -p "$dir"
	cp lib/*.[ch] "$dir"
	sed -i "${3:-}" "$dir/queue.c"
	(cd "$dir" && gcc "${flags[@]}" -I"$HWT_TOP" "${calls[@]}" -c ./*.c) &&
		gcc "${flags[@]}" -Wall -Wextra -Werror -I. -Ilib -o "$out/$1" tests/unit/libhwt_threads.c \
			"$dir"/*.o
}

# The test is able to fail: without that, a data race is reported, sooner or later.
broken()
{
	[ -n "$(sed "$1" lib/queue.c | diff lib/queue.c -)" ] || { echo "nothing is broken"; return 1; }
	sanitizer broken thread "$1" || return 1
	for _ in {1..20}; do
		! TSAN_OPTIONS=halt_on_error=1 timeout 60 "$out/broken" 0 2>&1 |
			grep 'WARNING: ThreadSanitizer: data race' || return 0
	done
	return 1
}

rm -rf "$out"
mkdir -p "$out"
point "it builds" build build
point "it builds for 32 bits" build build32 -m32
point "it builds with clang" build_clang
for std in c11 gnu11 c2x; do
	point "the header is fit for $std" header gcc c $std
done
for std in c++98 c++11 c++20; do
	point "the header is fit for $std" header g++ c++ $std
	point "a program in $std" cxx $std
done
declared >"$out/declared"
listed >"$out/listed"
exported >"$out/exported"
described >"$out/described"
point "what it exports is what the version script says" same "$out/listed" "$out/exported"
point "... which is what the header declares" same "$out/declared" "$out/exported"
point "... which is what the manual describes" same "$out/declared" "$out/described"
point "all of it has a version" versions
point "its soname, and what it needs" soname
point "names in the static library" static_names
point "it installs" install_all
point "what is installed" files_installed
point "pkg-config" config_says
point "a program built with pkg-config" program_shared
point "the same, static" program_static
point "a page for each function" pages
of_header >"$out/of_header"
of_manual >"$out/of_manual"
point "prototypes in the manual are those of the header" same "$out/of_header" "$out/of_manual"
point "the example in the manual is samples/libhwt_first.c" example
point "it builds with the thread sanitizer" sanitizer threads thread
point "threads and rings" timeout 120 "$out/threads" 0
point "threads and batches" timeout 120 "$out/threads" 2
point "threads and calls" timeout 120 "$out/threads" 6
point "it builds with other sanitizers" sanitizer memory address,undefined
point "memory, with rings" timeout 120 "$out/memory" 0
point "memory, with batches" timeout 120 "$out/memory" 2
for place in 'queue->op_tail, __ATOMIC_RELEASE' 'rings->op_head, __ATOMIC_ACQUIRE' \
	'rings->event_tail, __ATOMIC_ACQUIRE' 'queue->event_head, __ATOMIC_RELEASE'; do
	point "without ${place/*, /}, ${place/,*/} is a race" broken "s/$place/${place/,*/}, __ATOMIC_RELAXED/"
done
for lock in op_lock event_lock; do
	point "without $lock there are races" broken "s/pthread_mutex_[un]*lock(&queue->$lock);//"
done
echo "1..$n"
