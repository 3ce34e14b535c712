/* record_message.c - the message of a record, decoded, printed, and blanked. */
#include <stddef.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"

struct ProtobufCMessage *dv_record_decode(const struct dv_record *record, struct dv_arena *arena,
                                          struct dv_err *err)
{
    const struct dv_record_method *method = dv_record_method_find(record->method);

    if (!method) {
        (void)dv_fail(err, DV_UNIMPLEMENTED, "the method %.*s is not known",
                      DV_FMT(record->method));
        return NULL;
    }
    if (record->message_bytes > 0) {
        (void)dv_fail(err, DV_OUT_OF_RANGE, "only %zu of %llu bytes were kept", record->message.n,
                      (unsigned long long)record->message_bytes);
        return NULL;
    }
    return dv_pb_decode(dv_record_is_request(record) ? method->request : method->response,
                        record->message, arena, err);
}

void dv_record_print_message(const struct dv_record *record, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct ProtobufCMessage *message;
    struct dv_err err;

    message = dv_record_decode(record, arena, &err);
    if (message) {
        dv_pb_print_sent(message, buf);
        return;
    }
    dv_buf_add_c(buf, "{\"[undecoded]\":\"");
    dv_base64_encode(record->message, buf);
    dv_buf_add_c(buf, "\",\"[why]\":");
    dv_buf_add_json(buf, dv_str_from_c(err.msg));
    dv_buf_add_char(buf, '}');
}

/* ---- what is secret ---- */

static const struct {
    dv_str word;
    uint32_t bits;
} words[] = {
    {DV_STR_INIT("env"),         DV_BLANK_ENV        },
    {DV_STR_INIT("annotations"), DV_BLANK_ANNOTATIONS},
    {DV_STR_INIT("config"),      DV_BLANK_CONFIG     },
    {DV_STR_INIT("unknown"),     DV_BLANK_UNKNOWN    },
    {DV_STR_INIT("all"),         DV_BLANK_ALL        },
};

bool dv_record_blanks_parse(dv_str list, uint32_t *blanks, struct dv_err *err)
{
    dv_str rest = list;
    uint32_t bits = 0;
    dv_str word;

    while (rest.p && dv_str_split(&rest, ',', &word)) {
        size_t i = 0;

        while (i < DV_COUNT(words) && !dv_str_eq(words[i].word, word))
            i++;
        if (i == DV_COUNT(words))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "\"%.*s\" cannot be blanked; there are env, annotations, config, "
                           "unknown, all",
                           DV_FMT(word));
        bits |= words[i].bits;
    }
    *blanks = bits;
    return true;
}

/* Where secrets may be: how the name of the message's type ends, and the field. */
static const struct {
    dv_str message;
    dv_str field;
    uint32_t bit;
} secrets[] = {
    {DV_STR_INIT(".EnvsEntry"),        DV_STR_INIT("value"),           DV_BLANK_ENV        },
    {DV_STR_INIT(".AnnotationsEntry"), DV_STR_INIT("value"),           DV_BLANK_ANNOTATIONS},
    {DV_STR_INIT(""),                  DV_STR_INIT("resource_handle"), DV_BLANK_CONFIG     },
    {DV_STR_INIT(".RawExtension"),     DV_STR_INIT("raw"),             DV_BLANK_CONFIG     },
};

struct blanking {
    uint32_t blanks;
    bool has_blanked;
};

static bool blank(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    struct blanking *blanking = ctx;
    dv_str message = dv_str_from_c(text->message);
    bool is_secret = !text->field && blanking->blanks & DV_BLANK_UNKNOWN;

    for (size_t i = 0; text->field && i < DV_COUNT(secrets); i++)
        is_secret |= blanking->blanks & secrets[i].bit &&
                     dv_str_eq(dv_str_from_c(text->field), secrets[i].field) &&
                     dv_str_ends_with(message, secrets[i].message);
    if (!is_secret || text->value.n == 0)
        return false;
    blanking->has_blanked = true;
    *replacement = DV_STR(DV_BLANKED);
    return true;
}

void dv_record_blank(struct dv_record *record, uint32_t blanks, struct dv_arena *arena)
{
    struct blanking blanking = {.blanks = blanks};
    struct ProtobufCMessage *message;
    struct dv_err err;
    char *bytes;
    size_t n;

    if (blanks == 0 || record->message.n == 0)
        return;
    message = dv_record_decode(record, arena, &err);
    if (!message) { /* nobody can say what is in it */
        record->is_blanked = true;
        if (record->message_bytes == 0)
            record->message_bytes = record->message.n;
        record->message.n = 0;
        return;
    }
    dv_pb_edit(message, blank, &blanking, arena);
    if (!blanking.has_blanked)
        return;
    n = dv_pb_size(message);
    bytes = dv_arena_alloc(arena, n, 1);
    dv_pb_encode(message, bytes, n);
    record->message = (dv_str){bytes, n};
    record->is_blanked = true;
}
