/* header.c - the header of a request: taken from libmicrohttpd, and held against RFC 9112.
 *
 * libmicrohttpd 0.9 reads more than HTTP is: lines that end in a bare LF, fields that go on in the
 * next line (whose value it loses), zero bytes (at which it cuts a path or a value). Two readers of
 * one request then see two requests, and a field like Impersonate-User can be hidden. It parses in
 * place and tells neither, but leaves every text where it arrived: so texts that do not lie exactly
 * as a good header has them, with one space, colon or CRLF between, were not sent as one. A zero
 * byte in the place of the CR is the only thing that cannot be told from it, and means the same. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <microhttpd.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "rest/rest_server.h"

/* The limit of a request's line and header, with libmicrohttpd's own note of each field: the rest
 * of a connection's memory is for the header of the answer. */
#define HEADER_BYTES_MAX (DV_REST_CONNECTION_BYTES - 4096u)
#define FIELD_BYTES 64u
/* The CRLF at the end of a line, which libmicrohttpd has zeroed. */
#define LINE_END_BYTES 2u
/* How much of a name is quoted in a message. */
#define SHOWN_BYTES_MAX 40u

struct header {
    struct dv_rest_call *call;
    const char *next; /* where the next line has to begin; NULL: a line was not in its place */
    DV_VEC(struct dv_rest_field) fields;
};

/* ---- where it lies ---- */

static bool is_blank(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    return from == to;
}

/* Returns where the line of a field ends. A field lies as "name:", blanks, value, CRLF; what
 * follows the colon is looked at only when the name is in its place, so that it is all in one
 * line. */
static const char *end_of_line(const char *next, dv_str name, dv_str value)
{
    const char *colon = name.p + name.n;

    if (!next || name.p != next || (uintptr_t)value.p <= (uintptr_t)colon ||
        (size_t)(value.p - colon) > DV_REST_CONNECTION_BYTES || !is_blank(colon + 1, value.p))
        return NULL;
    return value.p + value.n + LINE_END_BYTES;
}

static dv_str trim_end(dv_str text)
{
    while (text.n > 0 && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    return text;
}

static enum MHD_Result add_field(void *ctx, enum MHD_ValueKind kind, const char *name,
                                 size_t name_bytes, const char *value, size_t value_bytes)
{
    struct header *header = ctx;
    struct dv_arena *arena = header->call->arena;
    dv_str name_text = {name, name_bytes};
    dv_str value_text = {value, value_bytes};

    (void)kind;
    header->next = end_of_line(header->next, name_text, value_text);
    *dv_vec_add_in(&header->fields, arena) = (struct dv_rest_field){
        dv_str_copy(name_text, arena),
        dv_str_copy(trim_end(value_text), arena),
    };
    return MHD_YES;
}

/* Returns where the first field has to begin; NULL: the request's line is not as it has to be. */
static const char *end_of_request_line(const struct dv_rest_call *call, const char *method,
                                       const char *version)
{
    dv_str target = call->target;

    if (!target.p || target.p != method + strlen(method) + 1 || version != target.p + target.n + 1)
        return NULL;
    return version + strlen(version) + LINE_END_BYTES;
}

static size_t header_size(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

/* ---- what it says ---- */

static void refuse(struct dv_rest_refusal *refusal, unsigned status)
{
    refusal->status = status;
    refusal->closes = true;
}

static size_t header_bytes(const struct dv_rest_request *request)
{
    size_t n = request->path.n + request->query.n + FIELD_BYTES;

    for (size_t i = 0; i < request->n_fields; i++)
        n += request->fields[i].name.n + request->fields[i].value.n + FIELD_BYTES;
    return n;
}

static size_t count_fields(const struct dv_rest_request *request, dv_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields; i++)
        n += dv_str_eq_nocase(request->fields[i].name, name);
    return n;
}

/* Whether it can be a field's value, which may have tabs but no other control characters. */
static bool is_value(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (((unsigned char)text.p[i] < ' ' && text.p[i] != '\t') || text.p[i] == 0x7f)
            return false;
    return true;
}

static void check_texts(const struct dv_rest_request *request, struct dv_rest_refusal *refusal)
{
    if (!dv_rest_is_token(request->method)) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "the method is no name");
    }
    for (size_t i = 0; i < request->n_fields && refusal->status == 0; i++) {
        const struct dv_rest_field *field = &request->fields[i];

        if (dv_rest_is_token(field->name) && is_value(field->value))
            continue;
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT,
                      "field %zu of the header (\"%.*s\") has a character that cannot be in it",
                      i + 1, DV_FMT(dv_str_slice(field->name, 0, SHOWN_BYTES_MAX)));
    }
}

/* Refuses two fields of a name that must be there once: a proxy in front of us may use the other
 * one. */
static void check_single(const struct dv_rest_request *request, struct dv_rest_refusal *refusal)
{
    static const dv_str names[] = {
        DV_STR_INIT("Authorization"),   DV_STR_INIT("Content-Type"),
        DV_STR_INIT("Impersonate-Uid"), DV_STR_INIT("Impersonate-User"),
        DV_STR_INIT("Expect"),
    };

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        if (count_fields(request, names[i]) <= 1)
            continue;
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "want one %.*s field", DV_FMT(names[i]));
        return;
    }
}

void dv_rest_header_too_large(const struct dv_rest_call *call, struct dv_rest_refusal *refusal)
{
    refusal->status = MHD_HTTP_CONTENT_TOO_LARGE;
    (void)dv_fail(&refusal->err, DV_RESOURCE_EXHAUSTED, "the body is larger than %zu bytes",
                  call->server->options.body_bytes_max);
}

/* Checks how the body's length is given, which libmicrohttpd checks less strictly. */
static void check_framing(const struct dv_rest_call *call, struct dv_rest_refusal *refusal)
{
    const struct dv_rest_request *request = &call->request;
    size_t n_lengths = count_fields(request, DV_STR("Content-Length"));
    size_t n_encodings = count_fields(request, DV_STR("Transfer-Encoding"));
    dv_str encoding = dv_rest_request_field(request, DV_STR("Transfer-Encoding"));
    dv_str text = dv_rest_request_field(request, DV_STR("Content-Length"));
    size_t length;

    if (n_lengths + n_encodings > 1) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "the length of the body is given twice");
    } else if (n_encodings > 0 && call->is_old) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "HTTP/1.0 has no Transfer-Encoding");
    } else if (n_encodings > 0 && !dv_str_eq_nocase(encoding, DV_STR("chunked"))) {
        refuse(refusal, MHD_HTTP_NOT_IMPLEMENTED);
        (void)dv_fail(&refusal->err, DV_UNIMPLEMENTED, "unknown Transfer-Encoding \"%.*s\"",
                      DV_FMT(encoding));
    } else if (n_lengths > 0 &&
               (!dv_str_to_size(text, &length) || length > call->server->options.body_bytes_max)) {
        dv_rest_header_too_large(call, refusal);
    }
}

/* Whether the body is compressed. Nothing here can undo that, and a handler that took it for JSON
 * would give a misleading error. */
static bool is_encoded(const struct dv_rest_request *request)
{
    dv_str encoding = dv_rest_request_field(request, DV_STR("Content-Encoding"));

    return encoding.n > 0 && !dv_str_eq_nocase(encoding, DV_STR("identity"));
}

static void check(const struct dv_rest_call *call, struct dv_rest_refusal *refusal)
{
    const struct dv_rest_request *request = &call->request;

    if (call->target_err.code != DV_OK) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        refusal->err = call->target_err;
        return;
    }
    if (header_bytes(request) > HEADER_BYTES_MAX) {
        refusal->status = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
        (void)dv_fail(&refusal->err, DV_RESOURCE_EXHAUSTED, "the header is larger than %u bytes",
                      HEADER_BYTES_MAX);
        return;
    }
    check_texts(request, refusal);
    if (refusal->status == 0 && !call->is_old && count_fields(request, DV_STR("Host")) != 1) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "want one Host field");
    }
    if (refusal->status == 0)
        check_single(request, refusal);
    if (refusal->status == 0)
        check_framing(call, refusal);
    if (refusal->status == 0 && is_encoded(request)) {
        refusal->status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "want a body without Content-Encoding");
    }
}

static bool is_body_unwanted(const struct dv_rest_request *request)
{
    dv_str text = dv_rest_request_field(request, DV_STR("Content-Length"));
    size_t length = 0;

    if (text.n > 0 && (!dv_str_to_size(text, &length) || length > DV_REST_DISCARD_BYTES_MAX))
        return true;
    return dv_rest_request_field(request, DV_STR("Expect")).n > 0;
}

void dv_rest_header_take(struct dv_rest_call *call, const char *method, const char *version,
                         struct dv_rest_refusal *refusal)
{
    struct MHD_Connection *mhd = call->conn->mhd;
    struct dv_rest_request *request = &call->request;
    struct header header = {.call = call, .next = end_of_request_line(call, method, version)};
    const char *end = method + header_size(mhd);

    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, add_field, &header); /* a count */
    request->method = dv_str_copy(dv_str_from_c(method), call->arena);
    request->fields = header.fields.v;
    request->n_fields = header.fields.n;
    check(call, refusal);
    if (refusal->status == 0 && (!header.next || header.next + LINE_END_BYTES != end)) {
        refuse(refusal, MHD_HTTP_BAD_REQUEST);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT,
                      "the header has a zero byte, a line that does not end in CRLF, or a field "
                      "over several lines");
    }
    call->target = DV_STR_NONE;
    if (refusal->status != 0)
        refusal->is_body_unwanted = is_body_unwanted(request);
}
