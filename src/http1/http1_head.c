#include "http1/http1_head.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "base/num.h"

/* How much of a name is quoted in a message. */
#define SHOWN_BYTES_MAX 40u

bool dv_h1_refuse(struct dv_h1 *h1, unsigned status, enum dv_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)dv_vfail(&h1->err, code, fmt, args);
    va_end(args);
    h1->status = status;
    return false;
}

/* ---- texts ---- */

static bool is_token_char(char c)
{
    return dv_is_alphanumeric(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool dv_h1_is_token(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_token_char(text.p[i]))
            return false;
    return text.n > 0;
}

bool dv_h1_is_value(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (((unsigned char)text.p[i] < ' ' && text.p[i] != '\t') || text.p[i] == 0x7f)
            return false;
    return true;
}

/* ---- the first line ---- */

static bool is_visible(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f)
            return false;
    return text.n > 0;
}

static bool take_version(struct dv_h1 *h1, dv_str version)
{
    bool is_good = version.n == 8 && dv_str_starts_with(version, DV_STR("HTTP/")) &&
                   dv_is_digit(version.p[5]) && version.p[6] == '.' && dv_is_digit(version.p[7]);

    if (!is_good)
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT,
                            "bad request: the first line does not end in HTTP/1.1");
    if (version.p[5] != '1')
        return dv_h1_refuse(h1, 505, DV_UNIMPLEMENTED, "bad request: there is no %.*s here",
                            DV_FMT(version));
    h1->is_old = h1->head.is_old = version.p[7] == '0';
    return true;
}

bool dv_h1_take_request_line(struct dv_h1 *h1, dv_str line)
{
    dv_str rest = line;
    dv_str method;
    dv_str target;

    if (line.n > 0 && !is_token_char(line.p[0])) /* TLS, or anything else */
        return dv_h1_refuse(h1, 0, DV_INVALID_ARGUMENT, "bad request: this is not HTTP");
    if (!dv_str_split(&rest, ' ', &method) || !dv_str_split(&rest, ' ', &target) ||
        !dv_h1_is_token(method) || !is_visible(target))
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT,
                            "bad request: the first line is not a method, a target without spaces "
                            "and a version");
    if (!take_version(h1, rest))
        return false;
    h1->method_n = method.n;
    h1->target_n = target.n;
    h1->is_head = dv_str_eq(method, DV_STR("HEAD"));
    return true;
}

/* ---- fields ---- */

static dv_str trim(dv_str text)
{
    while (text.n > 0 && (text.p[0] == ' ' || text.p[0] == '\t'))
        text = dv_str_slice(text, 1, text.n);
    while (text.n > 0 && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    return text;
}

bool dv_h1_take_field(struct dv_h1 *h1, dv_str line, bool is_kept)
{
    size_t colon = dv_str_find_char(line, ':');
    dv_str name = dv_str_slice(line, 0, colon);
    dv_str value = trim(dv_str_slice(line, colon + 1, line.n));

    if (line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t'))
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT,
                            "bad request: a field of the header goes over several lines");
    if (colon == line.n || !dv_h1_is_token(name) || !dv_h1_is_value(value))
        return dv_h1_refuse(
            h1, 400, DV_INVALID_ARGUMENT,
            "bad request: field %zu of the header (\"%.*s\") has no colon, or a "
            "character that cannot be in it",
            h1->places.n + 1,
            DV_FMT(dv_h1_is_value(name) ? dv_str_slice(name, 0, SHOWN_BYTES_MAX) : DV_STR("")));
    if (is_kept)
        *dv_vec_add(&h1->places) = (struct dv_h1_place){(size_t)(name.p - h1->text.p), name.n,
                                                        (size_t)(value.p - h1->text.p), value.n};
    return true;
}

/* ---- what they say together ---- */

/* The fields that say where the body and the connection end. */
struct framing {
    size_t n_hosts;
    size_t n_lengths;
    size_t n_encodings;
    dv_str length;
    dv_str encoding;
    bool says_close;
    bool says_keep_alive;
    bool says_upgrade;
    bool expects_a_word;
};

static void note_connection(struct framing *framing, dv_str value)
{
    dv_str option;

    if (value.n == 0)
        return;
    while (dv_str_split(&value, ',', &option)) {
        option = trim(option);
        framing->says_close |= dv_str_eq_nocase(option, DV_STR("close"));
        framing->says_keep_alive |= dv_str_eq_nocase(option, DV_STR("keep-alive"));
        framing->says_upgrade |= dv_str_eq_nocase(option, DV_STR("upgrade"));
    }
}

static void note(struct framing *framing, const struct dv_h1_field *field)
{
    if (dv_str_eq_nocase(field->name, DV_STR("Host"))) {
        framing->n_hosts++;
    } else if (dv_str_eq_nocase(field->name, DV_STR("Content-Length"))) {
        framing->n_lengths++;
        framing->length = field->value;
    } else if (dv_str_eq_nocase(field->name, DV_STR("Transfer-Encoding"))) {
        framing->n_encodings++;
        framing->encoding = field->value;
    } else if (dv_str_eq_nocase(field->name, DV_STR("Connection"))) {
        note_connection(framing, field->value);
    } else if (dv_str_eq_nocase(field->name, DV_STR("Expect"))) {
        framing->expects_a_word |= dv_str_eq_nocase(field->value, DV_STR("100-continue"));
    }
}

static bool take_length(struct dv_h1 *h1, dv_str text)
{
    if (!dv_str_is_digits(text))
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT,
                            "bad request: Content-Length is not a number");
    if (!dv_str_to_u64(text, &h1->head.length))
        h1->head.length = UINT64_MAX;
    return true;
}

static bool take_framing(struct dv_h1 *h1, const struct framing *framing)
{
    bool is_old = h1->head.is_old;

    if (framing->n_hosts > 1 || (framing->n_hosts == 0 && !is_old))
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT, "want one Host field");
    if (framing->n_lengths + framing->n_encodings > 1)
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT, "the length of the body is given twice");
    if (framing->n_encodings > 0 && is_old)
        return dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT, "HTTP/1.0 has no Transfer-Encoding");
    if (framing->n_encodings > 0 && !dv_str_eq_nocase(framing->encoding, DV_STR("chunked")))
        return dv_h1_refuse(h1, 501, DV_UNIMPLEMENTED, "unknown Transfer-Encoding \"%.*s\"",
                            DV_FMT(dv_str_slice(framing->encoding, 0, SHOWN_BYTES_MAX)));
    if (framing->n_lengths > 0 && !take_length(h1, framing->length))
        return false;
    h1->head.is_chunked = framing->n_encodings > 0;
    h1->head.expects_a_word = framing->expects_a_word && !is_old;
    h1->head.wants_to_change = framing->says_upgrade && !is_old;
    h1->keeps_open = !framing->says_close && (!is_old || framing->says_keep_alive);
    return true;
}

bool dv_h1_take_head_end(struct dv_h1 *h1)
{
    dv_str text = dv_buf_str(&h1->text);
    struct framing framing = {0};

    for (size_t i = 0; i < h1->places.n; i++) {
        const struct dv_h1_place *place = &h1->places.v[i];
        struct dv_h1_field *field = dv_vec_add(&h1->fields);

        field->name = (dv_str){text.p + place->name_at, place->n_name};
        field->value = (dv_str){text.p + place->value_at, place->n_value};
        note(&framing, field);
    }
    h1->head.text = text;
    h1->head.method = (dv_str){text.p, h1->method_n};
    h1->head.target = (dv_str){text.p + h1->method_n + 1, h1->target_n};
    h1->head.fields = h1->fields.v;
    h1->head.n_fields = h1->fields.n;
    return take_framing(h1, &framing);
}
