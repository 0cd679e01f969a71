// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills in the structures of hwt_uapi.h, by a table of their fields. A field's kind determines the
 * value that a byte of the program has for it.
 */
#include "fuzz.h"

struct known known;

/* Delays and deadlines: at once, soon, later, never, and limits of the type. */
static uint64_t value_time(uint8_t byte)
{
	const uint64_t n = byte & 31, soon = n * 200 * USEC - MSEC, now = now_ns();
	const uint64_t values[] = {
		n * 100 * USEC, now + soon, (1ULL << 63) - 16 + n, HWT_NEVER - n,
		1ULL << (2 * n), n * SEC, now + (1ULL << (2 * n)), clock_ns(CLOCK_REALTIME) + soon,
	};

	return values[byte >> 5];
}

static uint64_t value_span(uint8_t byte)
{
	const uint64_t n = byte & 31;
	const uint64_t values[] = {
		n * 500 * USEC, n * 500 * USEC, n, HWT_NEVER - n, (1ULL << 63) - 16 + n,
		1ULL << (2 * n), n * SEC, n * SEC,
	};

	return values[byte >> 5];
}

static uint64_t value_id(uint8_t byte)
{
	const unsigned int n = byte & 31;
	const uint64_t id = known.ids[n % IDS];
	const uint64_t values[] = { id ^ 1ULL << 32, id + 1, n, HWT_NEVER - n };

	if (byte >> 7)
		return values[byte >> 5 & 3];
	/* 0: the latest id. */
	return known.ids_n ? known.ids[(known.ids_n - 1 - n) % IDS] : id;
}

static uint64_t value_size(uint8_t byte, uint32_t size)
{
	const uint32_t values[] = { size, size + 8, size - 8, PAGE, PAGE + 1, ~0U };

	return byte < COUNT(values) ? values[byte] : byte;
}

static uint64_t value_power(uint8_t byte)
{
	return byte ? (1ULL << (byte & 31)) + (byte >> 6) - (byte >> 5 & 1) : 0;
}

uint64_t value_count(uint8_t byte)
{
	const uint64_t values[] = {
		byte + 1, (byte & 63) * 8, 1ULL << (byte & 31), ~0U - (byte & 63),
	};

	return values[byte >> 6];
}

/* The bits of the byte select from the known flags, in order; from 0xf0 on, any one bit. */
static uint64_t value_flags(uint8_t byte, uint32_t known_flags)
{
	uint32_t flag, flags = 0;

	if (byte >= 0xf0)
		return 1U << (byte & 15);
	for (; known_flags; known_flags &= known_flags - 1, byte >>= 1) {
		flag = known_flags & -known_flags;
		flags |= byte & 1 ? flag : 0;
	}
	return flags;
}

static uint64_t field_value(const struct field *field, uint8_t byte)
{
	const uint64_t values[] = {
		[FIELD_SIZE] = value_size(byte, field->value),
		[FIELD_ZERO] = byte ? 1ULL << (byte % (8 * field->bytes)) : 0,
		[FIELD_CONST] = byte ? byte : field->value,
		[FIELD_FLAGS] = value_flags(byte, field->value),
		[FIELD_MODE] = byte < 0xf0 ? byte % 3 : byte,
		[FIELD_TIME] = value_time(byte),
		[FIELD_SPAN] = value_span(byte),
		[FIELD_ID] = value_id(byte),
		[FIELD_DATA] = byte * 0x0101010101010101ULL,
		[FIELD_TICK] = byte < 8 ? byte * MSEC : 1ULL << (byte & 63),
		[FIELD_POWER] = value_power(byte),
		[FIELD_LEVELS] = byte < 0xf0 ? byte % 8 : ~0U - byte,
		[FIELD_COUNT] = value_count(byte),
		[FIELD_ROOM] = byte ? value_count(byte) : LIST_ROOM,
		[FIELD_ENTRIES] = byte < 0xe0 ? 1ULL << byte % 12 :
				  byte == 0xe0 ? 0 : value_power(byte),
		[FIELD_CURSOR] = byte < 0x80 ? known.cursor :
				 byte < 0xc0 ? value_power(byte) : value_time(byte),
		[FIELD_CPU] = byte < 0xf0 ? byte % 2 : value_power(byte),
		[FIELD_SMALL] = byte < 0xf0 ? byte % 4 : ~0U,
		[FIELD_OPCODE] = byte < 0xf0 ? 1 + byte % 4 : byte,
		[FIELD_BUFFER] = 0,
	};

	return values[field->kind];
}

#define FIELD_VALUE(_type, _member, _kind, _value)			\
	{								\
		.offset	= offsetof(struct _type, _member),		\
		.bytes	= sizeof(((struct _type *)0)->_member),		\
		.kind	= FIELD_##_kind,				\
		.value	= _value,					\
	}
#define FIELD(_type, _member, _kind)	FIELD_VALUE(_type, _member, _kind, 0)

/* Each structure begins with the size and flags. */
#define FIELDS(_type, _flags, ...)						\
	.fields = (const struct field[]) {					\
		FIELD_VALUE(_type, size, SIZE, sizeof(struct _type)),		\
		FIELD_VALUE(_type, flags, FLAGS, _flags), ##__VA_ARGS__, {}	\
	}

#define ARM_FLAGS	(HWT_ARM_ABSOLUTE | HWT_ARM_EARLIER | HWT_ARM_PENDING |	\
			 HWT_ARM_UNLESS_PENDING)

const struct ioctl ioctls[IOCTLS] = {
	[IOCTL_INFO] = { HWT_IOC_INFO, FIELDS(hwt_info_args, 0) },
	[IOCTL_SETUP] = { HWT_IOC_SETUP, FIELDS(hwt_setup_args, 0x7f00,
		FIELD(hwt_setup_args, tick_ns, TICK),
		FIELD(hwt_setup_args, ticks_per_wheel, POWER),
		FIELD(hwt_setup_args, levels, LEVELS),
		FIELD(hwt_setup_args, max_pending, SMALL),
		FIELD(hwt_setup_args, cpu, CPU),
		FIELD(hwt_setup_args, priority, SMALL)) },
	[IOCTL_SCHEDULE] = { HWT_IOC_SCHEDULE, FIELDS(hwt_schedule_args, ARM_FLAGS,
		FIELD(hwt_schedule_args, mode, MODE),
		FIELD(hwt_schedule_args, time_ns, TIME),
		FIELD(hwt_schedule_args, period_ns, SPAN),
		FIELD(hwt_schedule_args, slack_ns, SPAN),
		FIELD(hwt_schedule_args, user_data, DATA),
		FIELD(hwt_schedule_args, id, ID)) },
	[IOCTL_MODIFY] = { HWT_IOC_MODIFY, FIELDS(hwt_modify_args,
		ARM_FLAGS | HWT_ARM_USER_DATA,
		FIELD(hwt_modify_args, id, ID),
		FIELD(hwt_modify_args, time_ns, TIME),
		FIELD(hwt_modify_args, period_ns, SPAN),
		FIELD(hwt_modify_args, slack_ns, SPAN),
		FIELD(hwt_modify_args, user_data, DATA),
		FIELD(hwt_modify_args, reserved, ZERO)) },
	[IOCTL_CANCEL] = { HWT_IOC_CANCEL, FIELDS(hwt_cancel_args, HWT_CANCEL_ALL,
		FIELD(hwt_cancel_args, id, ID)) },
	[IOCTL_GET] = { HWT_IOC_GET, FIELDS(hwt_get_args, 0, FIELD(hwt_get_args, id, ID)) },
	[IOCTL_LIST] = { HWT_IOC_LIST, FIELDS(hwt_list_args, 0,
		FIELD(hwt_list_args, cursor, CURSOR),
		FIELD(hwt_list_args, entries, BUFFER),
		FIELD(hwt_list_args, count, ROOM),
		FIELD_VALUE(hwt_list_args, entry_size, CONST, sizeof(struct hwt_list_entry))) },
	[IOCTL_STATS] = { HWT_IOC_STATS, FIELDS(hwt_stats_args, 0) },
	[IOCTL_RINGS] = { HWT_IOC_RINGS, FIELDS(hwt_rings_args, 0,
		FIELD(hwt_rings_args, op_entries, ENTRIES),
		FIELD(hwt_rings_args, event_entries, ENTRIES),
		FIELD_VALUE(hwt_rings_args, op_size, CONST, sizeof(struct hwt_op)),
		FIELD(hwt_rings_args, reserved, ZERO)) },
	[IOCTL_ENTER] = { HWT_IOC_ENTER, FIELDS(hwt_enter_args,
		HWT_ENTER_ABSOLUTE | HWT_ENTER_SIGMASK,
		FIELD(hwt_enter_args, submit, COUNT),
		FIELD(hwt_enter_args, wait, SMALL),
		FIELD(hwt_enter_args, timeout_ns, TIME),
		FIELD(hwt_enter_args, sigmask, DATA)) },
};

const struct field op_fields[] = {
	FIELD(hwt_op, opcode, OPCODE),
	FIELD_VALUE(hwt_op, flags, FLAGS, ARM_FLAGS | HWT_ARM_USER_DATA),
	FIELD(hwt_op, mode, MODE),
	FIELD(hwt_op, id, ID),
	FIELD(hwt_op, time_ns, TIME),
	FIELD(hwt_op, period_ns, SPAN),
	FIELD(hwt_op, slack_ns, SPAN),
	FIELD(hwt_op, user_data, DATA),
	FIELD(hwt_op, generation, ZERO),
	{}
};

void fields_fill(char *to, const struct field *fields, const uint8_t *bytes)
{
	uint64_t value;

	for (; fields->bytes; fields++, bytes++) {
		value = field_value(fields, *bytes);
		/* Little-endian: the lower half of the value comes first. */
		if (fields->kind != FIELD_BUFFER)
			memcpy(to + fields->offset, &value, fields->bytes == 4 ? 4 : 8);
	}
}
