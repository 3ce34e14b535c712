/* device_options.c - what plugins add to a container: allocate responses, merged. */
#include "device/state/device_message.h"

#include "base/arena.h"
#include "base/err.h"
#include "device/state/device_state.h"
#include "pb/pb.h"

/* The fields of a ContainerAllocateResponse, by number. Each is a list of messages whose fields
 * from 1 on are texts: a name or container path, a value or host path, permissions. */
enum part {
    PART_ENV = 1,
    PART_MOUNT = 2,
    PART_NODE = 3,
    PART_ANNOTATION = 4,
    PART_CDI = 5,
    N_PARTS,
};
#define TEXTS_MAX 3u
#define MOUNT_READ_ONLY DV_PB_TAG(3, DV_PB_VARINT)

static const struct {
    const char *name;
    unsigned n_texts;
    bool is_map; /* an entry replaces the one before it that has its name */
} parts[N_PARTS] = {
    [PART_ENV] = {"environment variable", 2, true },
      [PART_MOUNT] = {"mount",                2, false},
    [PART_NODE] = {"device node",          3, false},
      [PART_ANNOTATION] = {"annotation",           2, true },
    [PART_CDI] = {"CDI device",           1, false},
};

struct item {
    dv_str texts[TEXTS_MAX];
    bool is_read_only;
    const dv_str *response; /* that has it */
};

struct merging {
    struct dv_arena *arena;
    const dv_str *response;      /* being read */
    struct dv_map seen[N_PARTS]; /* items by name */
    DV_VEC(struct item *) items[N_PARTS];
    DV_VEC(struct dv_device_conflict) conflicts;
};

/* -- Reading -------------------------------------------------------------------------------- */

static bool read_item(struct dv_pb_reader *reader, enum part part, struct item *item,
                      struct dv_err *err)
{
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        unsigned number;

        if (!dv_pb_read(reader, &field, err))
            return false;
        number = field.tag >> 3;
        if (field.tag == DV_PB_TAG(number, DV_PB_BYTES) && number <= parts[part].n_texts) {
            if (!dv_pb_get_string(reader, &field, &item->texts[number - 1], err))
                return false;
        } else if (field.tag == MOUNT_READ_ONLY && part == PART_MOUNT) {
            item->is_read_only = field.value != 0;
        }
    }
    return true;
}

/* Calls `found` for each item; `merging` may be NULL when only the form of the response is
 * checked. */
static bool read_response(dv_str bytes, struct merging *merging,
                          void (*found)(struct merging *merging, enum part part,
                                        const struct item *item),
                          struct dv_err *err)
{
    struct dv_pb_reader reader, inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        struct item item = {0};
        enum part part;

        if (!dv_pb_read(&reader, &field, err))
            return dv_wrap(err, "allocate response");
        part = (enum part)(field.tag >> 3);
        if (part >= N_PARTS || field.tag != DV_PB_TAG(part, DV_PB_BYTES))
            continue;
        if (!dv_pb_enter(&reader, &field, &inner, err) || !read_item(&inner, part, &item, err))
            return dv_wrap(err, "allocate response: %s", parts[part].name);
        found(merging, part, &item);
    }
    return true;
}

static void ignore_item(struct merging *merging, enum part part, const struct item *item)
{
    (void)merging;
    (void)part;
    (void)item;
}

bool dv_device_response_check(dv_str response, struct dv_err *err)
{
    return read_response(response, NULL, ignore_item, err);
}

/* -- Merging -------------------------------------------------------------------------------- */

static void note_conflict(struct merging *merging, enum part part, const struct item *kept,
                          const struct item *dropped)
{
    if (part == PART_CDI || dv_str_eq(kept->texts[1], dropped->texts[1]))
        return;
    *dv_vec_add_in(&merging->conflicts, merging->arena) = (struct dv_device_conflict){
        .part = parts[part].name,
        .name = kept->texts[0],
        .kept = kept->texts[1],
        .dropped = dropped->texts[1],
    };
}

static void merge_item(struct merging *merging, enum part part, const struct item *item)
{
    struct item *kept = dv_map_get(&merging->seen[part], item->texts[0]);

    if (kept && parts[part].is_map && kept->response == merging->response) {
        kept->texts[1] = item->texts[1];
    } else if (kept) {
        note_conflict(merging, part, kept, item);
    } else {
        kept = DV_NEW(merging->arena, struct item);
        *kept = *item;
        kept->response = merging->response;
        (void)dv_map_set(&merging->seen[part], kept->texts[0], kept); /* is not there yet */
        *dv_vec_add_in(&merging->items[part], merging->arena) = kept;
    }
}

static const struct dv_device_pair *take_pairs(struct merging *merging, enum part part, size_t *n)
{
    struct dv_device_pair *pairs =
        DV_NEW_ARRAY(merging->arena, struct dv_device_pair, merging->items[part].n);

    *n = merging->items[part].n;
    for (size_t i = 0; i < *n; i++) {
        const struct item *item = merging->items[part].v[i];

        pairs[i] = (struct dv_device_pair){item->texts[0], item->texts[1]};
    }
    return pairs;
}

static void take_paths(struct merging *merging, struct dv_device_options *options)
{
    struct dv_device_mount *mounts;
    struct dv_device_node *nodes;
    dv_str *names;

    options->n_mounts = merging->items[PART_MOUNT].n;
    options->n_nodes = merging->items[PART_NODE].n;
    options->n_cdi_names = merging->items[PART_CDI].n;
    mounts = DV_NEW_ARRAY(merging->arena, struct dv_device_mount, options->n_mounts);
    nodes = DV_NEW_ARRAY(merging->arena, struct dv_device_node, options->n_nodes);
    names = DV_NEW_ARRAY(merging->arena, dv_str, options->n_cdi_names);
    for (size_t i = 0; i < options->n_mounts; i++) {
        const struct item *item = merging->items[PART_MOUNT].v[i];

        mounts[i] = (struct dv_device_mount){item->texts[0], item->texts[1], item->is_read_only};
    }
    for (size_t i = 0; i < options->n_nodes; i++) {
        const struct item *item = merging->items[PART_NODE].v[i];

        nodes[i] = (struct dv_device_node){item->texts[0], item->texts[1], item->texts[2]};
    }
    for (size_t i = 0; i < options->n_cdi_names; i++)
        names[i] = merging->items[PART_CDI].v[i]->texts[0];
    options->mounts = mounts;
    options->nodes = nodes;
    options->cdi_names = names;
}

bool dv_device_options_merge(const dv_str *responses, size_t n_responses, struct dv_arena *arena,
                             struct dv_device_options *options, struct dv_err *err)
{
    struct merging merging = {.arena = arena};
    bool is_good = true;

    for (size_t i = 0; i < n_responses && is_good; i++) {
        merging.response = &responses[i];
        is_good = read_response(responses[i], &merging, merge_item, err);
    }
    for (size_t part = 0; part < N_PARTS; part++)
        dv_map_fini(&merging.seen[part]);
    if (!is_good)
        return false;
    *options = (struct dv_device_options){
        .conflicts = merging.conflicts.v,
        .n_conflicts = merging.conflicts.n,
    };
    options->envs = take_pairs(&merging, PART_ENV, &options->n_envs);
    options->annotations = take_pairs(&merging, PART_ANNOTATION, &options->n_annotations);
    take_paths(&merging, options);
    return true;
}

/* -- Of a container ------------------------------------------------------------------------- */

bool dv_device_container_options(const struct dv_device_state *state, dv_str pod_uid,
                                 dv_str container, struct dv_arena *arena,
                                 struct dv_device_options *options)
{
    struct dv_device_held **held;
    size_t n = dv_device_held_of(state, pod_uid, container, arena, &held);
    dv_str *responses = DV_NEW_ARRAY(arena, dv_str, n);
    struct dv_err err;

    for (size_t i = 0; i < n; i++)
        responses[i] = held[i]->response;
    /* Cannot fail on a response: each was checked before it was recorded. */
    return n > 0 && dv_device_options_merge(responses, n, arena, options, &err);
}
