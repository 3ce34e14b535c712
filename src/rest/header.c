/* header.c - the header of a request: taken from the session that has read it, and held against
 * what handlers rely on. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "http1/http1.h"
#include "http2/http2_server.h"
#include "rest/rest.h"
#include "rest/rest_server.h"
#include "rest/target.h"

static void refuse(struct dv_rest_refusal *refusal, unsigned status)
{
    refusal->status = status;
    refusal->closes = true;
}

static size_t count_fields(const struct dv_rest_request *request, dv_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields; i++)
        n += dv_str_eq_nocase(request->fields[i].name, name);
    return n;
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
        refuse(refusal, 400);
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "want one %.*s field", DV_FMT(names[i]));
        return;
    }
}

void dv_rest_header_too_large(const struct dv_rest_server *server, struct dv_rest_refusal *refusal)
{
    refusal->status = 413;
    (void)dv_fail(&refusal->err, DV_RESOURCE_EXHAUSTED, "the body is larger than %zu bytes",
                  server->options.body_bytes_max);
}

/* Whether the body is compressed. Nothing here can undo that, and a handler that took it for JSON
 * would give a misleading error. */
static bool is_encoded(const struct dv_rest_request *request)
{
    dv_str encoding = dv_rest_request_field(request, DV_STR("Content-Encoding"));

    return encoding.n > 0 && !dv_str_eq_nocase(encoding, DV_STR("identity"));
}

static void check(struct dv_rest_call *call, dv_str target, uint64_t length,
                  struct dv_rest_refusal *refusal)
{
    if (!dv_rest_target_parse(target, &call->request.path, &call->request.query, &refusal->err)) {
        refuse(refusal, 400);
        return;
    }
    check_single(&call->request, refusal);
    if (refusal->status == 0 && length > call->server->options.body_bytes_max)
        dv_rest_header_too_large(call->server, refusal);
    if (refusal->status == 0 && is_encoded(&call->request)) {
        refusal->status = 415;
        (void)dv_fail(&refusal->err, DV_INVALID_ARGUMENT, "want a body without Content-Encoding");
    }
}

/* Returns the same part of the copy. */
static dv_str moved(dv_str part, dv_str text, const char *copy)
{
    return (dv_str){copy + (part.p - text.p), part.n};
}

void dv_rest_header_take(struct dv_rest_call *call, const struct dv_h1_head *head,
                         struct dv_rest_refusal *refusal)
{
    struct dv_rest_request *request = &call->request;
    const char *copy = dv_str_copy(head->text, call->arena).p;
    struct dv_rest_field *fields = DV_NEW_ARRAY(call->arena, struct dv_rest_field, head->n_fields);

    for (size_t i = 0; i < head->n_fields; i++)
        fields[i] = (struct dv_rest_field){moved(head->fields[i].name, head->text, copy),
                                           moved(head->fields[i].value, head->text, copy)};
    request->method = moved(head->method, head->text, copy);
    request->fields = fields;
    request->n_fields = head->n_fields;
    check(call, moved(head->target, head->text, copy), head->length, refusal);
}

void dv_rest_header_take_http2(struct dv_rest_call *call, const struct dv_h2_http_request *received,
                               struct dv_rest_refusal *refusal)
{
    struct dv_rest_request *request = &call->request;
    DV_VEC(struct dv_rest_field) fields = {0};

    if (received->authority.n > 0)
        *dv_vec_add_in(&fields, call->arena) =
            (struct dv_rest_field){DV_STR("Host"), dv_str_copy(received->authority, call->arena)};
    for (size_t i = 0; i < received->n_fields; i++)
        *dv_vec_add_in(&fields, call->arena) =
            (struct dv_rest_field){dv_str_copy(received->fields[i].name, call->arena),
                                   dv_str_copy(received->fields[i].value, call->arena)};
    request->method = dv_str_copy(received->method, call->arena);
    request->fields = fields.v;
    request->n_fields = fields.n;
    check(call, dv_str_copy(received->target, call->arena), received->length, refusal);
}
