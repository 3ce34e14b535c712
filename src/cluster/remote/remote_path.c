/* remote_path.c - the pure part of requests over HTTP: paths and queries as the API writes them,
 * and what its answers mean. */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/remote/remote_engine.h"
#include "cluster/remote/remote_event.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "json/json.h"

/* The longest Retry-After that is obeyed: a server that asks for more is asked again after this. */
#define RETRY_AFTER_MS_MAX 60000u
#define NUMBER_BYTES 24

static void add_encoded(struct dv_buf *buf, dv_str text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';

        if (is_plain) {
            dv_buf_add_char(buf, (char)c);
            continue;
        }
        dv_buf_add_char(buf, '%');
        dv_buf_add_char(buf, digits[c >> 4]);
        dv_buf_add_char(buf, digits[c & 15]);
    }
}

void dv_remote_path(const struct dv_kind *kind, const struct dv_api_version *version,
                    dv_str namespace, dv_str name, dv_str subresource, struct dv_buf *buf)
{
    dv_buf_add_c(buf, version->group.n ? "/apis/" : "/api/");
    dv_api_version_print(version, buf);
    if (kind->is_namespaced && namespace.n) {
        dv_buf_add_c(buf, "/namespaces/");
        add_encoded(buf, namespace);
    }
    dv_buf_add_char(buf, '/');
    dv_buf_add(buf, kind->plural);
    if (name.n) {
        dv_buf_add_char(buf, '/');
        add_encoded(buf, name);
    }
    if (subresource.n) {
        dv_buf_add_char(buf, '/');
        dv_buf_add(buf, subresource);
    }
}

void dv_remote_query(struct dv_buf *buf, const char *name, dv_str value)
{
    bool is_first = dv_str_find_char(dv_buf_str(buf), '?') == buf->n;

    if (value.n == 0)
        return;
    dv_buf_add_char(buf, is_first ? '?' : '&');
    dv_buf_add_c(buf, name);
    dv_buf_add_char(buf, '=');
    add_encoded(buf, value);
}

void dv_remote_query_u64(struct dv_buf *buf, const char *name, uint64_t value)
{
    char digits[NUMBER_BYTES];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, value);

    dv_remote_query(buf, name, (dv_str){digits, (size_t)n});
}

struct dv_api_status *dv_remote_status(unsigned code, dv_str body, struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_json *doc = body.n ? dv_json_parse(body, NULL, arena, &err) : NULL;

    if (doc && dv_str_eq(dv_remote_text(doc, "kind"), DV_STR("Status"))) {
        struct dv_api_status *status = DV_NEW(arena, struct dv_api_status);

        if (dv_decode_json(&dv_message_status, doc, DV_UNKNOWN_KEEP, arena, status, NULL, &err)) {
            /* The code of the HTTP answer counts: a gateway in between may answer otherwise than
             * the body says. */
            status->code = code;
            return status;
        }
    }
    return dv_status_new((int)code, DV_STR_NONE, arena, "the server answered %u: %.*s", code,
                         DV_FMT(dv_str_slice(body, 0, 200)));
}

bool dv_remote_is_no_path(const struct dv_api_status *status)
{
    return status->code == 404 && (!status->details || status->details->name.n == 0);
}

dv_str dv_remote_warning(dv_str field, struct dv_arena *arena)
{
    size_t start = dv_str_find_char(field, '"') + 1;
    size_t end = field.n;
    char *text = dv_arena_alloc_raw(arena, field.n, 1);
    size_t n = 0;

    while (end > start && field.p[end - 1] != '"')
        end--;
    if (end <= start) /* there is no quoted name in the message */
        return dv_str_copy(field, arena);
    for (size_t i = start; i < end - 1; i++) {
        if (field.p[i] == '\\' && i + 1 < end - 1)
            i++;
        text[n++] = field.p[i];
    }
    return (dv_str){text, n};
}

bool dv_remote_retry_after(dv_str field, uint64_t *wait_ms)
{
    uint64_t seconds;

    if (!dv_str_to_u64(dv_str_trim(field), &seconds))
        return false;
    *wait_ms = dv_u64_min(seconds, RETRY_AFTER_MS_MAX / 1000) * 1000;
    return true;
}
