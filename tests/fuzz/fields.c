// SPDX-License-Identifier: GPL-2.0-only
/*
 * The structures of hwt_uapi.h are filled in from a table of their fields: what a byte of the
 * program makes of a field depends on what kind of field it is.
 */
#include "fields.h"

#include <string.h>
#include <time.h>

struct known known;

/* -- Values -------------------------------------------------------------- */

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * SEC + now.tv_nsec;
}

/* Delays and deadlines: at once, soon, later, never, and where numbers end. */
static uint64_t value_time(uint8_t byte)
{
	unsigned int n = byte & 31;

	switch (byte >> 5) {
	case 0:
		return n * 100 * USEC;
	case 1:
		return now_ns() + n * 200 * USEC - MSEC;
	case 2:
		return (1ULL << 63) - 16 + n;
	case 3:
		return HWT_NEVER - n;
	case 4:
		return 1ULL << (2 * n);
	case 5:
		return n * SEC;
	case 6:
		return now_ns() + (1ULL << (2 * n));
	default:
		return real_ns() + n * 200 * USEC - MSEC;
	}
}

/* Periods and slacks. */
static uint64_t value_span(uint8_t byte)
{
	unsigned int n = byte & 31;

	switch (byte >> 5) {
	case 0:
	case 1:
		return n * 500 * USEC;
	case 2:
		return n;
	case 3:
		return HWT_NEVER - n;
	case 4:
		return (1ULL << 63) - 16 + n;
	case 5:
		return 1ULL << (2 * n);
	default:
		return n * SEC;
	}
}

static uint64_t value_id(uint8_t byte)
{
	uint64_t id = known.ids[(byte & 31) % IDS];

	switch (byte >> 5) {
	case 4:
		return id ^ 1ULL << 32;
	case 5:
		return id + 1;
	case 6:
		return byte & 31;
	case 7:
		return HWT_NEVER - (byte & 31);
	default:
		/* 0 is the latest. */
		return known.ids_n ? known.ids[(known.ids_n - 1 - (byte & 31)) % IDS] : id;
	}
}

static uint64_t value_size(uint8_t byte, uint32_t size)
{
	switch (byte) {
	case 0:
		return size;
	case 1:
		return size + 8;
	case 2:
		return size - 8;
	case 3:
		return PAGE;
	case 4:
		return PAGE + 1;
	case 5:
		return ~0U;
	default:
		return byte;
	}
}

static uint64_t value_power(uint8_t byte)
{
	return byte ? (1ULL << (byte & 31)) + (byte >> 6) - (byte >> 5 & 1) : 0;
}

uint64_t value_count(uint8_t byte)
{
	switch (byte >> 6) {
	case 0:
		return byte + 1;
	case 1:
		return (byte & 63) * 8;
	case 2:
		return 1ULL << (byte & 31);
	default:
		return ~0U - (byte & 63);
	}
}

static uint64_t field_value(const struct field *field, uint8_t byte)
{
	static const int clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

	switch (field->kind) {
	case FIELD_SIZE:
		return value_size(byte, field->value);
	case FIELD_ZERO:
		return byte ? 1ULL << (byte % (8 * field->bytes)) : 0;
	case FIELD_CONST:
		return byte ? byte : field->value;
	case FIELD_FLAGS:
		return byte < 0xf0 ? byte & field->value : 1U << (byte & 15);
	case FIELD_MODE:
		return byte < 0xf0 ? byte % 3 : byte;
	case FIELD_TIME:
		return value_time(byte);
	case FIELD_SPAN:
		return value_span(byte);
	case FIELD_ID:
		return value_id(byte);
	case FIELD_DATA:
		return byte * 0x0101010101010101ULL;
	case FIELD_CLOCK:
		return byte < 0xf0 ? clocks[byte % 3] : byte;
	case FIELD_TICK:
		return byte < 8 ? byte * MSEC : 1ULL << (byte & 63);
	case FIELD_POWER:
		return value_power(byte);
	case FIELD_LEVELS:
		return byte < 0xf0 ? byte % 8 : ~0U - byte;
	case FIELD_COUNT:
		return value_count(byte);
	case FIELD_ROOM:
		return byte ? value_count(byte) : LIST_ROOM;
	case FIELD_STAGED:
		return byte ? value_count(byte) : known.staged;
	case FIELD_ENTRIES:
		return byte < 0xe0 ? 1ULL << byte % 12 : byte == 0xe0 ? 0 : value_power(byte);
	case FIELD_CURSOR:
		return byte < 0x80 ? known.cursor : byte < 0xc0 ? value_power(byte) :
		       value_time(byte);
	case FIELD_CPU:
		return byte < 0xf0 ? byte % 2 : value_power(byte);
	case FIELD_SMALL:
		return byte < 0xf0 ? byte % 4 : ~0U;
	case FIELD_OPCODE:
		return byte < 0xf0 ? 1 + byte % 4 : byte;
	default:
		return 0;
	}
}

static void put(char *to, unsigned int bytes, uint64_t value)
{
	uint32_t word = value;

	if (bytes == 4)
		memcpy(to, &word, 4);
	else
		memcpy(to, &value, 8);
}

/* -- The structures ------------------------------------------------------ */

/* The fields of a structure of arguments, but for its size and flags, which come first. */
#define FIELD_VALUE(_type, _member, _kind, _value)			\
	{								\
		.offset	= offsetof(struct _type, _member),		\
		.bytes	= sizeof(((struct _type *)0)->_member),		\
		.kind	= FIELD_##_kind,				\
		.value	= _value,					\
	}
#define FIELD(_type, _member, _kind)	FIELD_VALUE(_type, _member, _kind, 0)
#define SIZE_OF(_type)			FIELD_VALUE(_type, size, SIZE, sizeof(struct _type))
#define FLAGS_OF(_type, _flags)		FIELD_VALUE(_type, flags, FLAGS, _flags)

static const struct field info_fields[] = {
	SIZE_OF(hwt_info_args),
	FLAGS_OF(hwt_info_args, 0),
	FIELD(hwt_info_args, reserved, ZERO),
	FIELD(hwt_info_args, reserved2, ZERO),
};

static const struct field setup_fields[] = {
	SIZE_OF(hwt_setup_args),
	FLAGS_OF(hwt_setup_args, 0xf),
	FIELD(hwt_setup_args, tick_ns, TICK),
	FIELD(hwt_setup_args, ticks_per_wheel, POWER),
	FIELD(hwt_setup_args, levels, LEVELS),
	FIELD(hwt_setup_args, clock, CLOCK),
	FIELD(hwt_setup_args, reserved, ZERO),
	FIELD(hwt_setup_args, max_pending, SMALL),
	FIELD(hwt_setup_args, cpu, CPU),
	FIELD(hwt_setup_args, priority, SMALL),
};

static const struct field schedule_fields[] = {
	SIZE_OF(hwt_schedule_args),
	FLAGS_OF(hwt_schedule_args, 0x1),
	FIELD(hwt_schedule_args, mode, MODE),
	FIELD(hwt_schedule_args, time_ns, TIME),
	FIELD(hwt_schedule_args, period_ns, SPAN),
	FIELD(hwt_schedule_args, slack_ns, SPAN),
	FIELD(hwt_schedule_args, user_data, DATA),
	FIELD(hwt_schedule_args, reserved, ZERO),
};

static const struct field modify_fields[] = {
	SIZE_OF(hwt_modify_args),
	FLAGS_OF(hwt_modify_args, 0x3),
	FIELD(hwt_modify_args, id, ID),
	FIELD(hwt_modify_args, time_ns, TIME),
	FIELD(hwt_modify_args, period_ns, SPAN),
	FIELD(hwt_modify_args, slack_ns, SPAN),
	FIELD(hwt_modify_args, user_data, DATA),
	FIELD(hwt_modify_args, reserved, ZERO),
};

static const struct field cancel_fields[] = {
	SIZE_OF(hwt_cancel_args),
	FLAGS_OF(hwt_cancel_args, 0),
	FIELD(hwt_cancel_args, id, ID),
	FIELD(hwt_cancel_args, reserved, ZERO),
};

static const struct field get_fields[] = {
	SIZE_OF(hwt_get_args),
	FLAGS_OF(hwt_get_args, 0),
	FIELD(hwt_get_args, id, ID),
};

static const struct field list_fields[] = {
	SIZE_OF(hwt_list_args),
	FLAGS_OF(hwt_list_args, 0),
	FIELD(hwt_list_args, cursor, CURSOR),
	FIELD(hwt_list_args, entries, BUFFER),
	FIELD(hwt_list_args, count, ROOM),
	FIELD_VALUE(hwt_list_args, entry_size, CONST, sizeof(struct hwt_list_entry)),
};

static const struct field stop_fields[] = {
	SIZE_OF(hwt_stop_args),
	FLAGS_OF(hwt_stop_args, 0),
};

static const struct field stats_fields[] = {
	SIZE_OF(hwt_stats_args),
	FLAGS_OF(hwt_stats_args, 0),
};

static const struct field batch_fields[] = {
	SIZE_OF(hwt_batch_args),
	FLAGS_OF(hwt_batch_args, 0),
	FIELD(hwt_batch_args, ops, BUFFER),
	FIELD(hwt_batch_args, count, STAGED),
	FIELD_VALUE(hwt_batch_args, op_size, CONST, sizeof(struct hwt_op)),
};

static const struct field rings_fields[] = {
	SIZE_OF(hwt_rings_args),
	FLAGS_OF(hwt_rings_args, HWT_RINGS_POLL),
	FIELD(hwt_rings_args, op_entries, ENTRIES),
	FIELD(hwt_rings_args, event_entries, ENTRIES),
};

static const struct field enter_fields[] = {
	SIZE_OF(hwt_enter_args),
	FLAGS_OF(hwt_enter_args, 0),
	FIELD(hwt_enter_args, submit, COUNT),
	FIELD(hwt_enter_args, wait, SMALL),
	FIELD(hwt_enter_args, timeout_ns, TIME),
};

/* An operation of many; not the ioctls' head. */
static const struct field op_fields[OP_FIELDS] = {
	FIELD(hwt_op, opcode, OPCODE),
	FIELD_VALUE(hwt_op, flags, FLAGS, 0x3),
	FIELD(hwt_op, mode, MODE),
	FIELD(hwt_op, id, ID),
	FIELD(hwt_op, time_ns, TIME),
	FIELD(hwt_op, period_ns, SPAN),
	FIELD(hwt_op, slack_ns, SPAN),
	FIELD(hwt_op, user_data, DATA),
	FIELD(hwt_op, overruns, ZERO),
};

#define IOCTL(_NAME, _name)						\
	[IOCTL_##_NAME] = { HWT_IOC_##_NAME, _name##_fields,		\
			    COUNT(_name##_fields) }

const struct ioctl ioctls[IOCTLS] = {
	IOCTL(INFO, info), IOCTL(SETUP, setup), IOCTL(SCHEDULE, schedule),
	IOCTL(MODIFY, modify), IOCTL(CANCEL, cancel), IOCTL(GET, get), IOCTL(LIST, list),
	IOCTL(STOP, stop), IOCTL(STATS, stats), IOCTL(BATCH, batch), IOCTL(RINGS, rings),
	IOCTL(ENTER, enter),
};

void fields_fill(char *to, const struct field *fields, unsigned int n, const uint8_t *bytes)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (fields[i].kind != FIELD_BUFFER)
			put(to + fields[i].offset, fields[i].bytes,
			    field_value(&fields[i], bytes[i]));
}

void fields_fill_op(struct hwt_op *op, const uint8_t *bytes)
{
	fields_fill((char *)op, op_fields, OP_FIELDS, bytes);
}
