/* config_memo.c - reads what labels and annotations in the runtime remember of a container. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/config.h"
#include "workload/config/config_annotations.h"
#include "json/json.h"

/* Labels and annotations come from the runtime in any order. */
static dv_str find(const struct dv_str_entry *entries, size_t n, dv_str key)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(entries[i].key, key))
            return entries[i].value;
    return DV_STR_NONE;
}

static bool parse_hash(dv_str text, uint32_t *hash)
{
    uint64_t value = 0;

    if (text.n == 0 || text.n > 8)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *hash = (uint32_t)value;
    return true;
}

static struct dv_json *parse(dv_str text, struct dv_arena *arena)
{
    struct dv_err ignored; /* what cannot be read counts as absent */

    return text.n > 0 ? dv_json_parse(dv_str_copy(text, arena), NULL, arena, &ignored) : NULL;
}

static struct dv_api_lifecycle_handler *read_hook(dv_str text, struct dv_arena *arena)
{
    const struct dv_json *doc = parse(text, arena);
    struct dv_api_lifecycle_handler *hook = DV_NEW(arena, struct dv_api_lifecycle_handler);
    struct dv_err ignored;

    return doc && dv_decode_json(&dv_message_lifecycle_handler, doc, DV_UNKNOWN_DROP, arena, hook,
                                 NULL, &ignored)
               ? hook
               : NULL;
}

static void read_ports(dv_str text, struct dv_arena *arena, struct dv_config_memo *memo)
{
    const struct dv_json *doc = parse(text, arena);
    struct dv_api_container_port *ports =
        DV_NEW_ARRAY(arena, struct dv_api_container_port, dv_json_n(doc));
    const struct dv_json *node = dv_json_is(doc, DV_JSON_ARRAY) ? dv_json_first(doc) : NULL;
    struct dv_err ignored;
    size_t n = 0;

    for (; node; node = dv_json_next(node))
        if (!dv_decode_json(&dv_message_container_port, node, DV_UNKNOWN_DROP, arena, &ports[n++],
                            NULL, &ignored))
            return;
    memo->ports = ports;
    memo->n_ports = n;
}

void dv_config_read_annotations(const struct dv_str_entry *annotations, size_t n_annotations,
                                struct dv_arena *arena, struct dv_config_memo *memo)
{
    *memo = (struct dv_config_memo){
        .termination_message_path = find(annotations, n_annotations, NOTE_MESSAGE_PATH),
        .termination_message_policy = find(annotations, n_annotations, NOTE_MESSAGE_POLICY),
        .grace_period_s = -1,
    };
    memo->has_hash = parse_hash(find(annotations, n_annotations, NOTE_HASH), &memo->hash);
    if (!dv_str_to_u32(find(annotations, n_annotations, NOTE_RESTARTS), &memo->restart_count))
        memo->restart_count = 0;
    if (!dv_str_to_i64(find(annotations, n_annotations, NOTE_DELETION_GRACE),
                       &memo->grace_period_s) &&
        !dv_str_to_i64(find(annotations, n_annotations, NOTE_GRACE), &memo->grace_period_s))
        memo->grace_period_s = -1;
    memo->pre_stop = read_hook(find(annotations, n_annotations, NOTE_PRE_STOP), arena);
    read_ports(find(annotations, n_annotations, NOTE_PORTS), arena, memo);
}
