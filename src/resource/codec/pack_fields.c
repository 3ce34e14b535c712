/* pack_fields.c - packs FieldsV1. A member is a varint, and objects end with a 0:
 *
 *     number << 2 | has members << 1          "f:" and the name of the field with that number
 *     length << 2 | has members << 1 | 1      and the key itself, so many bytes, as it was escaped
 *
 * Keys of items ("k:{...}"), of maps and "." are kept as they are. */
#include "resource/codec/pack_fields.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "pb/pb.h"
#include "resource/codec/json_text.h"
#include "resource/codec/layout.h"
#include "resource/resource.h"

/* No object of the API is deeper. */
#define DEPTH_MAX 40u
#define IS_KEY 1u
#define HAS_MEMBERS 2u
/* What a packed member begins with: a zero byte and the kind. */
#define HEAD_BYTES 2u
/* Far above the text of any object. */
#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* ---- packing ---- */

/* What is left of a text. */
struct scan {
    const char *at;
    const char *end;
    bool has_odd_key; /* one of those that were unpacked is not plain (json_text.h) */
};

static bool take(struct scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

/* Takes a string, and sets `key` to what is between the quotes, with its escapes. */
static bool take_key(struct scan *scan, dv_str *key)
{
    const char *start;

    if (!take(scan, '"'))
        return false;
    start = scan->at;
    while (scan->at < scan->end && *scan->at != '"')
        scan->at += *scan->at == '\\' && scan->at + 1 < scan->end ? 2 : 1;
    *key = (dv_str){start, (size_t)(scan->at - start)};
    return take(scan, '"');
}

/* The field that a key names; NULL when it names none of the message's own. Fields of inline
 * structs have numbers of their own, and are no fields of the message here. */
static const struct dv_field *field_of(const struct dv_message *message, dv_str key)
{
    const struct dv_field *field;

    if (!message || !dv_str_starts_with(key, DV_STR("f:")))
        return NULL;
    field = dv_message_field(message, dv_str_slice(key, 2, key.n), NULL);
    return field && field >= message->fields && field < message->fields + message->n_fields &&
                   field->number > 0
               ? field
               : NULL;
}

/* The message that the members under a key are of: items of a list are of the list's. */
static const struct dv_message *message_under(const struct dv_message *message,
                                              const struct dv_field *field, dv_str key)
{
    if (field)
        return field->shape == DV_SHAPE_MAP ? NULL : field->message;
    return dv_str_starts_with(key, DV_STR("k:")) ? message : NULL;
}

static bool pack_members(const struct dv_message *message, struct scan *scan, size_t depth,
                         struct dv_buf *buf)
{
    do {
        const struct dv_field *field;
        unsigned members = 0;
        dv_str key;

        if (!take_key(scan, &key) || !take(scan, ':') || !take(scan, '{'))
            return false;
        if (!take(scan, '}'))
            members = HAS_MEMBERS;
        field = field_of(message, key);
        dv_pb_add_varint(buf, (uint64_t)(field ? field->number : key.n) << 2 | members |
                                  (field ? 0 : IS_KEY));
        if (!field)
            dv_buf_add(buf, key);
        if (!members)
            continue;
        if (depth == DEPTH_MAX ||
            !pack_members(message_under(message, field, key), scan, depth + 1, buf))
            return false;
    } while (take(scan, ','));
    dv_buf_add_char(buf, 0);
    return take(scan, '}');
}

bool dv_fields_pack(const struct dv_message *message, dv_str text, struct dv_buf *buf)
{
    struct scan scan = {.at = text.p, .end = text.p + text.n};
    size_t before = buf->n;

    if (take(&scan, '{') && pack_members(message, &scan, 0, buf) && scan.at == scan.end)
        return true;
    dv_buf_cut(buf, before);
    return false;
}

/* ---- unpacking ---- */

/* Takes the next varint. */
static bool take_varint(struct scan *scan, uint64_t *value)
{
    unsigned shift = 0;

    *value = 0;
    while (scan->at < scan->end && shift < 63) {
        unsigned char byte = (unsigned char)*scan->at++;

        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
        shift += 7;
    }
    return false;
}

/* Takes what follows a member's varint: the key that it has, or the field whose number it is. */
static bool take_name(const struct dv_message *message, struct scan *scan, uint64_t head,
                      const struct dv_field **field, dv_str *key)
{
    uint64_t n = head >> 2;

    *field = NULL;
    if (head & IS_KEY) {
        if (n > (size_t)(scan->end - scan->at))
            return false;
        *key = (dv_str){scan->at, (size_t)n};
        scan->at += n;
        return true;
    }
    *field = message && n <= UINT16_MAX ? dv_message_field_numbered(message, (uint32_t)n) : NULL;
    return *field != NULL;
}

static char *put(char *at, dv_str text)
{
    if (text.n > 0)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

static void add_name(const struct dv_field *field, dv_str key, bool is_first, struct dv_buf *buf)
{
    dv_str before = is_first ? DV_STR("\"") : DV_STR(",\"");
    dv_str mark = field ? DV_STR("f:") : DV_STR_NONE;
    dv_str name = field ? field->name : key;
    dv_str behind = DV_STR("\":{");
    char *at = dv_buf_extend(buf, before.n + mark.n + name.n + behind.n);

    if (at)
        (void)put(put(put(put(at, before), mark), name), behind);
}

/* Prints the members of an object into `buf`; without one it only checks them. */
static bool unpack_members(const struct dv_message *message, struct scan *scan, size_t depth,
                           struct dv_buf *buf)
{
    for (bool is_first = true;; is_first = false) {
        const struct dv_field *field;
        dv_str key = {0};
        uint64_t head;

        if (!take_varint(scan, &head))
            return false;
        if (head == 0)
            break;
        if (!take_name(message, scan, head, &field, &key))
            return false;
        scan->has_odd_key |= !dv_json_text_is_plain(key);
        if (buf)
            add_name(field, key, is_first, buf);
        if ((head & HAS_MEMBERS) &&
            (depth == DEPTH_MAX ||
             !unpack_members(message_under(message, field, key), scan, depth + 1, buf)))
            return false;
        if (buf)
            dv_buf_add_char(buf, '}');
    }
    return true;
}

bool dv_fields_check(const struct dv_message *message, dv_str packed, struct dv_err *err)
{
    struct scan scan = {.at = packed.p, .end = packed.p + packed.n};

    return (unpack_members(message, &scan, 0, NULL) && scan.at == scan.end) ||
           dv_fail(err, DV_DATA_LOSS, "fieldsV1 cannot be unpacked");
}

/* ---- members of objects ---- */

dv_str dv_fields_member(const struct dv_kind *kind, dv_str packed, struct dv_arena *arena)
{
    char *member = dv_arena_alloc_raw(arena, HEAD_BYTES + packed.n, 1);

    member[0] = '\0';
    member[1] = (char)kind->id;
    memcpy(member + HEAD_BYTES, packed.p, packed.n);
    return (dv_str){member, HEAD_BYTES + packed.n};
}

bool dv_fields_is_packed(dv_str member)
{
    return member.n > HEAD_BYTES && member.p[0] == '\0';
}

dv_str dv_fields_packed(dv_str member)
{
    return dv_str_slice(member, HEAD_BYTES, member.n);
}

/* The table that the names of fields were packed by. */
static const struct dv_message *message_of(enum dv_kind_id id)
{
    return id == DV_KIND_CUSTOM ? &dv_message_custom_object : dv_kind(id)->versions[0].message;
}

bool dv_fields_add_text(dv_str member, struct dv_buf *buf)
{
    const struct dv_message *message;
    struct scan scan;
    bool is_ok;

    if (!dv_fields_is_packed(member)) {
        dv_buf_add(buf, member);
        return dv_json_text_is_plain(member);
    }
    message = message_of((enum dv_kind_id)(unsigned char)member.p[1]);
    scan = (struct scan){.at = member.p + HEAD_BYTES, .end = member.p + member.n};
    dv_buf_add_char(buf, '{');
    is_ok = unpack_members(message, &scan, 0, buf);
    assert(is_ok && scan.at == scan.end); /* it was packed here, or checked when it was loaded */
    dv_buf_add_char(buf, '}');
    return !scan.has_odd_key; /* names of fields are plain */
}

dv_str dv_fields_text(dv_str member, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!dv_fields_is_packed(member))
        return member;
    (void)dv_fields_add_text(member, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

void dv_managed_fields_pack(const struct dv_kind *kind, struct dv_api_managed_fields_entry *entries,
                            size_t n, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        dv_buf_clear(&buf);
        if (!dv_fields_is_packed(entries[i].fields_v1) &&
            dv_fields_pack(kind->versions[0].message, entries[i].fields_v1, &buf))
            entries[i].fields_v1 = dv_fields_member(kind, dv_buf_str(&buf), arena);
    }
}
