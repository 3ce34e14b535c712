/* offer_record.c - what is remembered of a claim's devices while it has them. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "offer/offer.h"
#include "json/json.h"

#define RECORD_BYTES_MAX (4u * 1024u * 1024u)

static dv_str node_text(const struct dv_offer_node *node, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%s %u:%u %.*s", node->is_block ? "block" : "char", node->major,
                         node->minor, DV_FMT(node->path));
}

/* "char 188:0" of "char 188:0 /dev/ttyUSB0". */
static dv_str number_of(dv_str text)
{
    size_t first = dv_str_find_char(text, ' ');
    size_t second = dv_str_find_char(dv_str_slice(text, first + 1, text.n), ' ');

    return dv_str_slice(text, 0, first + 1 + second);
}

void dv_offer_record_make(dv_str claim_uid, dv_str claim, dv_str spec,
                          const struct dv_offer_given *given, size_t n_given,
                          struct dv_arena *arena, struct dv_offer_record *record)
{
    *record = (struct dv_offer_record){
        .claim_uid = dv_str_copy(claim_uid, arena),
        .claim = dv_str_copy(claim, arena),
        .spec = dv_str_copy(spec, arena),
        .devices = DV_NEW_ARRAY(arena, struct dv_offer_held, n_given),
        .n_devices = n_given,
    };
    for (size_t i = 0; i < n_given; i++) {
        const struct dv_offer_device *device = given[i].device;
        dv_str *nodes = DV_NEW_ARRAY(arena, dv_str, device->n_nodes);

        for (size_t k = 0; k < device->n_nodes; k++)
            nodes[k] = node_text(device->nodes[k], arena);
        record->devices[i] = (struct dv_offer_held){
            .offer = dv_str_copy(device->offer->name, arena),
            .name = dv_str_copy(device->name, arena),
            .request = dv_str_copy(given[i].request, arena),
            .key = dv_str_copy(device->key, arena),
            .place = dv_str_copy(device->place, arena),
            .is_shared = device->offer->is_shared,
            .nodes = nodes,
            .n_nodes = device->n_nodes,
        };
    }
}

/* ---- text ---- */

static void set_text(struct dv_json *object, const char *key, dv_str value, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(value, arena), arena);
}

void dv_offer_record_print(const struct dv_offer_record *record, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);

    set_text(doc, "uid", record->claim_uid, arena);
    set_text(doc, "claim", record->claim, arena);
    set_text(doc, "spec", record->spec, arena);
    for (size_t i = 0; i < record->n_devices; i++) {
        const struct dv_offer_held *held = &record->devices[i];
        struct dv_json *device = dv_json_new_object(arena);

        set_text(device, "offer", held->offer, arena);
        set_text(device, "name", held->name, arena);
        set_text(device, "request", held->request, arena);
        set_text(device, "key", held->key, arena);
        set_text(device, "place", held->place, arena);
        dv_json_set(device, DV_STR("shared"), dv_json_new_bool(held->is_shared, arena), arena);
        dv_json_set(device, DV_STR("nodes"), dv_json_new_strs(held->nodes, held->n_nodes, arena),
                    arena);
        dv_json_append(devices, device);
    }
    dv_json_set(doc, DV_STR("devices"), devices, arena);
    dv_json_print(doc, NULL, buf);
    dv_buf_add_char(buf, '\n');
}

static bool get_text(const struct dv_json *object, const char *key, dv_str *text,
                     struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(object, dv_str_from_c(key), err);

    return node && dv_json_as_str(node, text, err);
}

static bool get_device(const struct dv_json *object, struct dv_arena *arena,
                       struct dv_offer_held *held, struct dv_err *err)
{
    const struct dv_json *shared = dv_json_require(object, DV_STR("shared"), err);
    const struct dv_json *nodes;
    dv_str *texts;

    if (!shared || !dv_json_as_bool(shared, &held->is_shared, err) ||
        !get_text(object, "offer", &held->offer, err) ||
        !get_text(object, "name", &held->name, err) ||
        !get_text(object, "request", &held->request, err) ||
        !get_text(object, "key", &held->key, err) || !get_text(object, "place", &held->place, err))
        return false;
    nodes = dv_json_require(object, DV_STR("nodes"), err);
    if (!nodes || !dv_json_expect(nodes, DV_JSON_ARRAY, err))
        return false;
    held->nodes = texts = DV_NEW_ARRAY(arena, dv_str, dv_json_n(nodes));
    for (const struct dv_json *node = dv_json_first(nodes); node; node = dv_json_next(node))
        if (!dv_json_as_str(node, &texts[held->n_nodes++], err))
            return false;
    return true;
}

bool dv_offer_record_parse(dv_str text, struct dv_arena *arena, struct dv_offer_record *record,
                           struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = RECORD_BYTES_MAX};
    const struct dv_json *doc = dv_json_parse(dv_str_copy(text, arena), &opts, arena, err);
    const struct dv_json *devices = doc ? dv_json_require(doc, DV_STR("devices"), err) : NULL;
    struct dv_offer_record read = {0};

    if (!devices || !dv_json_expect(devices, DV_JSON_ARRAY, err) ||
        !get_text(doc, "uid", &read.claim_uid, err) || !get_text(doc, "claim", &read.claim, err) ||
        !get_text(doc, "spec", &read.spec, err))
        return false;
    read.devices = DV_NEW_ARRAY(arena, struct dv_offer_held, dv_json_n(devices));
    for (const struct dv_json *item = dv_json_first(devices); item; item = dv_json_next(item))
        if (!get_device(item, arena, &read.devices[read.n_devices++], err))
            return false;
    *record = read;
    return true;
}

/* ---- what it is for ---- */

void dv_offer_record_remember(const struct dv_offer_record *record, struct dv_arena *arena,
                              struct dv_offer_list *before)
{
    DV_VEC(struct dv_offer_device) all = {before->devices, before->n_devices, before->n_devices};

    for (size_t i = 0; i < record->n_devices; i++) {
        const struct dv_offer_held *held = &record->devices[i];
        struct dv_offer *offer = DV_NEW(arena, struct dv_offer);

        offer->name = dv_str_copy(held->offer, arena);
        *dv_vec_add_in(&all, arena) = (struct dv_offer_device){
            .offer = offer,
            .name = dv_str_copy(held->name, arena),
            .key = dv_str_copy(held->key, arena),
            .place = dv_str_copy(held->place, arena),
        };
    }
    before->devices = all.v;
    before->n_devices = all.n;
}

static bool has_node(const struct dv_offer_record *record, dv_str number, dv_str name)
{
    for (size_t i = 0; i < record->n_devices; i++) {
        const struct dv_offer_held *held = &record->devices[i];

        for (size_t k = 0; k < held->n_nodes && !dv_str_eq(held->name, name); k++)
            if (dv_str_eq(number_of(held->nodes[k]), number))
                return true;
    }
    return false;
}

const struct dv_offer_record *dv_offer_rival(const struct dv_offer_device *device,
                                             const struct dv_offer_record *const *records,
                                             size_t n_records)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    for (size_t k = 0; k < device->n_nodes && !device->offer->is_shared; k++) {
        dv_str number = number_of(node_text(device->nodes[k], arena));

        for (size_t i = 0; i < n_records; i++)
            if (has_node(records[i], number, device->name))
                return records[i];
    }
    return NULL;
}
