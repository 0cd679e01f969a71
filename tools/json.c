// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names for the terminal; and as much JSON as hwtctl writes and reads: one flat object a line
 */
#include "hwtctl.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
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

static char *skip_space(char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	return p;
}

/* \uXXXX, written as UTF-8. Return: behind it, or NULL. */
static char *unescape_code(char *p, char **to)
{
	unsigned int code = 0, i;

	for (i = 0; i < 4; i++, p++) {
		if (!isxdigit((unsigned char)*p))
			return NULL;
		code = code * 16 + (isdigit((unsigned char)*p) ? *p - '0' :
				    tolower((unsigned char)*p) - 'a' + 10);
	}
	/* No half characters, and no end in the middle of a string. */
	if (!code || (code >= 0xd800 && code < 0xe000))
		return NULL;
	if (code < 0x80) {
		*(*to)++ = code;
	} else if (code < 0x800) {
		*(*to)++ = 0xc0 | code >> 6;
		*(*to)++ = 0x80 | (code & 0x3f);
	} else {
		*(*to)++ = 0xe0 | code >> 12;
		*(*to)++ = 0x80 | (code >> 6 & 0x3f);
		*(*to)++ = 0x80 | (code & 0x3f);
	}
	return p;
}

/* A string is never longer than what it is written as. Return: behind it, or NULL. */
static char *parse_string(char *p, const char **string)
{
	static const char names[] = "\"\\/bfnrt", chars[] = "\"\\/\b\f\n\r\t";
	char *to = p + 1;
	const char *name;

	if (*p++ != '"')
		return NULL;
	*string = to;
	while (*p != '"') {
		if ((unsigned char)*p < ' ')
			return NULL;
		if (*p != '\\') {
			*to++ = *p++;
			continue;
		}
		p++;
		if (*p == 'u') {
			p = unescape_code(p + 1, &to);
			if (!p)
				return NULL;
			continue;
		}
		name = *p ? strchr(names, *p) : NULL;
		if (!name)
			return NULL;
		*to++ = chars[name - names];
		p++;
	}
	*to = 0;
	return p + 1;
}

static char *parse_value(char *p, struct json_field *field)
{
	char *end;

	if (*p == '"') {
		field->type = JSON_STRING;
		return parse_string(p, &field->string);
	}
	if (isdigit((unsigned char)*p)) {
		field->type = JSON_NUMBER;
		errno = 0;
		field->number = strtoull(p, &end, 10);
		/* Numbers do not begin with a zero, and ours are whole. */
		if (errno || (*p == '0' && end > p + 1))
			return NULL;
		return end;
	}
	field->type = JSON_BOOL;
	field->number = 0;
	if (!strncmp(p, "false", 5))
		return p + 5;
	field->number = 1;
	if (!strncmp(p, "true", 4))
		return p + 4;
	field->type = JSON_NULL;
	return strncmp(p, "null", 4) ? NULL : p + 4;
}

int json_parse(char *line, struct json_field *fields, int max)
{
	char *p = skip_space(line);
	int count = 0;

	if (*p != '{')
		return -1;
	p = skip_space(p + 1);
	if (*p == '}')
		return *skip_space(p + 1) ? -1 : 0;
	for (;;) {
		struct json_field *field = &fields[count];

		if (count++ == max)
			return -1;
		p = parse_string(p, &field->key);
		if (!p)
			return -1;
		p = skip_space(p);
		if (*p != ':')
			return -1;
		p = parse_value(skip_space(p + 1), field);
		if (!p)
			return -1;
		p = skip_space(p);
		if (*p == '}')
			return *skip_space(p + 1) ? -1 : count;
		if (*p != ',')
			return -1;
		p = skip_space(p + 1);
	}
}

/* How many bytes the character of UTF-8 has that is there; 0: it is none. */
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

/* What is no UTF-8, as names of processes may be, becomes question marks: JSON has no bytes. */
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
