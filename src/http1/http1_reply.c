/* http1_reply.c - the client's side: the head of an answer to a request of ours. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "http1/http1.h"

/* "HTTP/1.1 101 Switching Protocols" */
static bool take_status_line(dv_str line, struct dv_h1_reply *reply)
{
    dv_str rest = line;
    dv_str version;
    dv_str digits;
    uint32_t status;

    if (!dv_str_split(&rest, ' ', &version) || !dv_str_split(&rest, ' ', &digits) ||
        !dv_str_starts_with(version, DV_STR("HTTP/1.")) || version.n != 8 ||
        !dv_is_digit(version.p[7]) || digits.n != 3 || !dv_str_to_u32(digits, &status) ||
        status < 100)
        return false;
    reply->status = status;
    return dv_h1_is_value(rest);
}

static bool take_field(dv_str line, struct dv_h1_reply *reply, struct dv_h1_field *field)
{
    size_t at = dv_str_find_char(line, ':');

    field->name = dv_str_slice(line, 0, at);
    field->value = dv_str_trim(dv_str_slice(line, at + 1, line.n));
    if (at == line.n || !dv_h1_is_token(field->name) || !dv_h1_is_value(field->value))
        return false;
    if (!dv_str_eq_nocase(field->name, DV_STR("Content-Length")))
        return true;
    if (reply->has_length || !dv_str_to_u64(field->value, &reply->length))
        return false; /* given twice, two readers could see two bodies */
    reply->has_length = true;
    return true;
}

/* Takes the next line, which has to end in CRLF. */
static bool next_line(dv_str *text, dv_str *line)
{
    if (!dv_str_split(text, '\n', line) || !dv_str_ends_with(*line, DV_STR("\r")))
        return false;
    line->n--;
    return true;
}

static bool take_lines(dv_str text, struct dv_arena *arena, struct dv_h1_reply *reply)
{
    DV_VEC(struct dv_h1_field) fields = {0};
    dv_str line;

    if (!next_line(&text, &line) || !take_status_line(line, reply))
        return false;
    while (text.n > 0)
        if (!next_line(&text, &line) || !take_field(line, reply, dv_vec_add_in(&fields, arena)))
            return false;
    reply->fields = fields.v;
    reply->n_fields = fields.n;
    return true;
}

bool dv_h1_parse_reply(dv_str bytes, struct dv_arena *arena, struct dv_h1_reply *reply,
                       struct dv_err *err)
{
    static const dv_str end = DV_STR_INIT("\r\n\r\n");
    size_t at = dv_str_find(bytes, end);

    *reply = (struct dv_h1_reply){0};
    if (at == bytes.n && bytes.n <= DV_H1_HEAD_BYTES_MAX)
        return true;
    if (at > DV_H1_HEAD_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "the answer's header is larger than %u bytes",
                       DV_H1_HEAD_BYTES_MAX);
    reply->head_bytes = at + end.n;
    if (take_lines(dv_str_slice(bytes, 0, at + 2), arena, reply)) /* without the empty line */
        return true;
    return dv_fail(err, DV_INTERNAL, "the answer is not HTTP");
}
