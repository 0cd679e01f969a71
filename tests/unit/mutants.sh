#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mutants.sh DIR [NAME]: can the tests fail? Each line below breaks the wheel in
# one place (a sed expression on hwt_wheel.c and hwt_wheel.h). The unit tests or
# the random ones must notice, by failing, crashing or hanging. Built in DIR.
set -u
: "${WHEEL:=../..}"

dir=$1
only=${2:-}

mutants()
{
	cat <<'END'
the cursor's own tick is not due         s/if (tick <= buckets->cursor)/if (tick < buckets->cursor)/
a level is left out                      s/level < buckets->levels - 1 &&/level + 1 < buckets->levels - 1 \&\&/
a level too high                         s/diff >> (shift + buckets->bits)/diff >> shift/
the next slot                            s/((tick >> shift) & hwt/((tick >> shift) + 1 \& hwt/
never is an ordinary tick                s/if (tick == HWT_TICK_NEVER)/if (false)/
bitmaps of all levels are one            s/(size_t)level \* buckets->words/0/
bitmaps are one long                     s/BITS_TO_LONGS(1UL << bits)/1/
bitmap is not cleared                    s/kvcalloc(/kvmalloc_array(/
inserts overtake a paused visit          s/return buckets->visited &&/return false \&\& buckets->visited \&\&/
inserts overtake below a paused visit    s/place->level \* buckets->bits)/0)/
inserts overtake a paused rebase         s/64 - HWT_TICK_SHIFT);/0);/
inserted in front                        s/list_add_tail(link, list)/list_add(link, list)/
insert sets no bit                       s/^\t\thwt_bucket_mark(buckets, bucket, true);//
remove clears no bit                     s/if (prev == next)/if (false)/
remove always clears the bit             s/if (prev == next)/if (true)/
removed, and not known as such           s/timeout->link.next = NULL;//
a slot is passed over                    s/(now \& mask) + 1)/(now \& mask) + 2)/
top level does not go round              s/at <= now + mask + 1/at <= (now | mask)/
a round is taken for the next turn       s/best << shift;/(now + 1) << shift;/
the current slot of the top level is forgotten  s/at <= now + mask + 1/at <= now + mask/
the first occupied of the top level      s/if (top\[slot\].first >> shift < best)/if (best == HWT_TICK_NEVER)/
first: not the least                     s/^\t\tbucket->first = min(bucket->first, tick);//
first: of an empty bucket                s/^\t\tbucket->first = tick;/\t\tbucket->first = min(bucket->first, tick);/
first: those that stay are forgotten     s/^\t\t\tbucket->first = min(bucket->first, tick);//
first: never forgotten                   s/bucket->first = HWT_TICK_NEVER;//
first: of what is inserted into a visit  s/list_add_tail(&timeout->link, buckets->visited)/hwt_list_put(buckets, buckets->visited, \&timeout->link, tick)/
inserted in front of a visit             s/list_add_tail(&timeout->link, buckets->visited)/list_add(\&timeout->link, buckets->visited)/
skip enters a bucket                     s/place.tick - 1/place.tick/
skip over what is due                    s/ || !list_empty(&buckets->due))$/)/
skip over a visit                        /^void hwt_buckets_skip/,/^}/s/buckets->visited || //
skip goes back                           /^void hwt_buckets_skip/,/^}/s/max(buckets->cursor, now)/now/
next tick forgets the turn               s/((now \& ~(u64)mask) + place->slot) << shift/place->slot << shift/
next tick forgets the visit              /^u64 hwt_buckets_next_tick/,/^}/s/if (buckets->visited)/if (false)/
budget is never used up                  s/(\*budget)--;//
entering a bucket costs nothing          s/^\t\tbudget--;//
budget is one more                       s/if (!\*budget) {/if (!(*budget + 1)) {/
mark is one too far                      s/list_add_tail(&buckets->mark, pos)/list_add(\&buckets->mark, pos)/
a visit leaves the bit                   /^static void hwt_visit_end/,/^}/s/if (list_empty(list))/if (false)/
a visit always clears the bit            /^static void hwt_visit_end/,/^}/s/if (list_empty(list))/if (true)/
a tick's timeouts become due in front    /^static void hwt_buckets_enter/,/^}/s/list_splice_tail_init/list_splice_init/
a tick leaves the bit                    /^static void hwt_buckets_enter/,/^}/s/hwt_bucket_mark(.*false);//
rounds are not looked at                 s/place->level == 0 && buckets->levels > 1/place->level == 0/
the cursor stays behind on entering      s/buckets->cursor = place->tick;//
the last bucket is left for later        s/place.tick > now/place.tick >= now/
too far by a tick                        s/place.tick > now/place.tick > now + 1/
the cursor stays behind                  s/buckets->cursor = max(buckets->cursor, now);//
the cursor goes back                     s/buckets->cursor = max(buckets->cursor, now);/buckets->cursor = now;/
gather forgets never                     s/list_splice_tail_init(&buckets->never, list);//
gather leaves the bits                   s/__clear_bit(slot, map);//
gather forgets a paused rebase           s/list_splice_tail_init(&buckets->displaced, list);//
gather leaves the mark                   /^static void hwt_buckets_gather/,/^}/s/list_del\(_init\)*(&buckets->mark);//
gather does not end the visit            /^static void hwt_buckets_gather/,/^}/s/hwt_visit_end(buckets);//
gather turns buckets round               s/list_splice_tail_init(home, list)/list_splice_init(home, list)/
rebase forgets what was due              s/list_splice_init(&buckets->due, .*);//
rebase leaves the cursor                 /^void hwt_buckets_rebase/,/^}/s/buckets->cursor = now;//
levels are not limited                   s/min(levels, DIV_ROUND_UP(.*));/levels;/
memory is leaked                         s/kvfree(buckets->occupied);//
memory is leaked when there is too little /^int hwt_buckets_init/,/^}/s/hwt_buckets_destroy(buckets);//
slack: the end is not limited            s/min(slack, HWT_TICK_NEVER - 1 - tick)/slack/
slack: the start is left out             s/fls64((tick - 1) ^ last)/fls64(tick ^ last | 1)/
slack: half as round                     s/last >> bit << bit/last >> (bit \& ~1) << (bit \& ~1)/
slack: never is a number                 s/if (tick >= HWT_TICK_NEVER)/if (tick > HWT_TICK_NEVER)/
END
}

# In ten times the processor time that it takes; else it hangs.
passes()
{
	# Two shells: the outer one says "Killed", and that to nobody.
	(
		(ulimit -t 2; exec "$@")
		exit $?
	) >/dev/null 2>&1
}

# Only what changed is written, so that make builds no more than it has to.
put()
{
	cmp -s - "$1" <<<"$2" || printf '%s\n' "$2" >"$1"
}

# mutant NAME EXPRESSION: says who noticed, or nothing if there was nothing to do.
mutant()
{
	local name=$1 expression=$2 file text changed=

	for file in hwt_wheel.c hwt_wheel.h; do
		text=$(sed "$expression" "$WHEEL/$file")
		[ "$text" = "$(cat "$WHEEL/$file")" ] || changed=yes
		put "$dir/$file" "$text"
	done
	if [ ! "$changed" ] && [ "$expression" ]; then
		echo "not ok - mutant: $name: nothing to change any more"
		return
	fi
	if ! make -s -j2 OUT="$dir" WHEEL="$dir" WARN=-w SANITIZE= OPTIMIZE=-O1 programs; then
		echo "not ok - mutant: $name: does not build"
		return
	fi
	noticed=
	passes "$dir/unit" || noticed+=" unit"
	passes "$dir/random" -o 300000 || noticed+=" random"
}

mkdir -p "$dir"
noticed=
mutant "none" ""
if [ "$noticed" ]; then
	echo "not ok - mutants: the wheel is as it is, and does not pass:$noticed"
	exit 1
fi
mutants | while IFS= read -r line; do
	# Two or more spaces, or the slash of an address, end the name.
	name=$(sed -E 's/ ( .*|\/.*)$//' <<<"$line")
	expression=${line#"$name"}
	expression=${expression#"${expression%%[! ]*}"}
	[ -z "$only" ] || [ "$name" = "$only" ] || continue

	noticed=unknown
	mutant "$name" "$expression"
	case $noticed in
	unknown) ;;
	"") echo "not ok - mutant: $name: nobody noticed" ;;
	*) echo "ok - mutant: $name: noticed by$noticed" ;;
	esac
done
