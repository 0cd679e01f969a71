// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names for the terminal, and strings and times in the JSON that hwtctl writes. save.c reads JSON.
 */
#include "hwtctl.h"
#include <string.h>

char *name_escape(char *buffer, size_t size, const char *name)
{
	char *to = buffer, one[5];
	unsigned char c;

	for (; *name; name++) {
		c = *name;
		if (c == '\n' || c == '\\')
			snprintf(one, sizeof(one), "\\%c", c == '\n' ? 'n' : c);
		else
			snprintf(one, sizeof(one), c < ' ' || c > '~' ? "\\x%02x" : "%c", c);
		if (to + strlen(one) >= buffer + size)
			break;
		to = stpcpy(to, one);
	}
	*to = 0;
	return buffer;
}

/* Return the number of bytes of the UTF-8 character at @string; 0: it is not UTF-8. */
static int utf8_length(const char *string)
{
	static const unsigned int first[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *byte = (const unsigned char *)string;
	int length = *byte < 0x80 ? 1 : *byte < 0xc0 ? 0 : *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 : 4;
	unsigned int code = *byte & (0xff >> (length + 1));
	int i;

	if (length < 2)
		return length;
	for (i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (byte[i] & 0x3f);
	}
	if (*byte >= 0xf8 || code < first[length] || code > 0x10ffff || code >> 11 == 0x1b)
		return 0;
	return length;
}

/* Names of processes may be other than UTF-8, which JSON cannot hold: such bytes become '?'. */
void json_put_string(FILE *to, const char *string)
{
	unsigned char last;
	int length;

	fputc('"', to);
	for (; *string; string += length ? length : 1) {
		length = utf8_length(string);
		last = length ? string[length - 1] : 0;
		if (!length)
			fputc('?', to);
		else if (*string == '"' || *string == '\\')
			fprintf(to, "\\%c", *string);
		else if (length == 1 ? last < ' ' || last == 0x7f :
			 *string == '\xc2' && last < 0xa0)
			fprintf(to, "\\u%04x", last);
		else
			fwrite(string, 1, length, to);
	}
	fputc('"', to);
}

void json_put_time(FILE *to, const char *key, __u64 ns)
{
	if (ns == HWT_NEVER)
		fprintf(to, ",\"%s\":null", key);
	else
		fprintf(to, ",\"%s\":%llu", key, ns);
}
