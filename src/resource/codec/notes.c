#include "resource/codec/notes.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "resource/resource.h"
#include "json/json.h"

/* The reference reports as many; more mistakes than that have one cause. */
#define NOTES_MAX 100u
/* A path consists of keys of one document, which has at most 64 MiB, each quoted once. */
#define PATH_BYTES_MAX (64u * 1024u * 1024u)
#define NOTE_BYTES_MAX (6u * PATH_BYTES_MAX)
#define FIRST_NOTES 8u

static size_t index_of(const struct dv_json *parent, const struct dv_json *item)
{
    size_t n = 0;

    for (const struct dv_json *at = dv_json_first(parent); at != item; at = dv_json_next(at))
        n++;
    return n;
}

/* Prints the path as the reference does, with keys of maps as they are: "spec.requests[0].x". */
static void print_path(const struct dv_json *node, struct dv_buf *buf, struct dv_arena *arena)
{
    size_t n_nodes = 0;
    const struct dv_json **nodes;

    for (const struct dv_json *at = node; at; at = dv_json_parent(at))
        n_nodes++;
    nodes = DV_NEW_ARRAY(arena, const struct dv_json *, n_nodes);
    for (size_t i = n_nodes; i > 0; i--) {
        nodes[i - 1] = node;
        node = dv_json_parent(node);
    }
    for (size_t i = 1; i < n_nodes; i++) {
        if (dv_json_is(nodes[i - 1], DV_JSON_ARRAY)) {
            dv_buf_printf(buf, "[%zu]", index_of(nodes[i - 1], nodes[i]));
            continue;
        }
        if (i > 1)
            dv_buf_add_char(buf, '.');
        dv_buf_add(buf, dv_json_key(nodes[i]));
    }
}

static void add(struct dv_decode_notes *notes, dv_str note, struct dv_arena *arena)
{
    for (size_t i = 0; i < notes->n; i++)
        if (dv_str_eq(notes->v[i], note))
            return;
    if (notes->n == notes->size) {
        size_t size = dv_size_max(FIRST_NOTES, notes->size * 2);
        dv_str *grown = DV_NEW_ARRAY(arena, dv_str, size);

        if (notes->n > 0)
            memcpy(grown, notes->v, notes->n * sizeof(dv_str));
        notes->v = grown;
        notes->size = size;
    }
    notes->v[notes->n++] = dv_str_copy(note, arena);
}

static void note(struct dv_decode_notes *notes, const char *what, const struct dv_json *member,
                 struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf path;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&path, PATH_BYTES_MAX);
    dv_buf_init(&text, NOTE_BYTES_MAX);
    if (!notes || notes->n >= NOTES_MAX)
        return;
    print_path(member, &path, arena);
    dv_buf_printf(&text, "%s field ", what);
    dv_buf_add_json(&text, path.is_over ? DV_STR("(its path is too long)") : dv_buf_str(&path));
    add(notes, dv_buf_str(&text), arena);
}

void dv_note_unknown(struct dv_decode_notes *notes, const struct dv_json *member,
                     struct dv_arena *arena)
{
    note(notes, "unknown", member, arena);
}

void dv_note_repeated(struct dv_decode_notes *notes, const struct dv_json *member,
                      struct dv_arena *arena)
{
    if (dv_json_is_repeated(member))
        note(notes, "duplicate", member, arena);
}

/* Fields that were taken out of the API, and what is to be written in their place. */
static const struct {
    const struct dv_message *message;
    dv_str name;
    dv_str instead[2]; /* with one of these, the old field is unknown like any other */
    const char *advice;
} removed[] = {
    {&dv_message_pod_resource_claim,
     DV_STR_INIT("source"),
     {DV_STR_INIT("resourceClaimName"), DV_STR_INIT("resourceClaimTemplateName")},
     "was removed in v1.31; write resourceClaimName or resourceClaimTemplateName directly under "
     "the claim's entry"},
};

const char *dv_removed_advice(const struct dv_message *message, const struct dv_json *object,
                              dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(removed); i++)
        if (removed[i].message == message && dv_str_eq(removed[i].name, name) &&
            !dv_json_get(object, removed[i].instead[0]) &&
            !dv_json_get(object, removed[i].instead[1]))
            return removed[i].advice;
    return NULL;
}
