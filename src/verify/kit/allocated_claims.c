/* allocated_claims.c - claims for the driver under test: made in the API, allocated as the
 * scheduler does. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"
#include "verify/kit/dra_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/verify.h"
#include "json/json.h"

#define CLAIM_BYTES_MAX (1u << 20)
#define CLASS "verify"

/* ---- what is asked for ---- */

static dv_str request_text(struct dv_trial *trial, const char *name, const char *more)
{
    return dv_str_printf(trial->arena,
                         "{name: %s, exactly: {deviceClassName: " CLASS "%s, selectors: [{cel: "
                         "{expression: 'device.driver == \"%s\"'}}]}}",
                         name, more, trial->facts.name);
}

static dv_str own_claim(struct dv_trial *trial, enum dv_claim_shape shape)
{
    dv_str first =
        request_text(trial, "first", shape == DV_CLAIM_ADMIN ? ", adminAccess: true" : "");
    dv_str second = shape == DV_CLAIM_TWO ? request_text(trial, "second", "") : DV_STR_NONE;
    dv_str config = DV_STR_NONE;

    if (shape == DV_CLAIM_CONFIG)
        config = dv_str_printf(trial->arena,
                               ", config: [{requests: [first], opaque: {driver: %s, parameters: "
                               "{}}}]",
                               trial->facts.name);
    return dv_str_printf(trial->arena, "spec: {devices: {requests: [%.*s%s%.*s]%.*s}}\n",
                         DV_FMT(first), second.n > 0 ? ", " : "", DV_FMT(second), DV_FMT(config));
}

/* Makes the classes of a file, and returns its claim. */
static const struct dv_json *read_file(struct dv_trial *trial, dv_str path)
{
    const struct dv_json *claim = NULL;
    struct dv_yaml_stream *stream;
    struct dv_json *doc;
    struct dv_err err;
    dv_str failure;
    dv_str text;
    dv_str kind;

    if (!dv_file_read(path, CLAIM_BYTES_MAX, trial->arena, &text, &err) ||
        !(stream = dv_yaml_stream_new(text, NULL, &err)))
        dv_trial_break(trial, "%s", err.msg);
    while (dv_yaml_stream_next(stream, trial->arena, &doc, &err) && doc) {
        const struct dv_message *message = dv_kind(DV_KIND_CLASS)->versions[0].message;
        void *value = dv_arena_alloc(trial->arena, message->size, message->align);

        if (!dv_json_as_str(dv_json_get(doc, DV_STR("kind")), &kind, &err))
            continue;
        if (dv_str_eq(kind, DV_STR("ResourceClaim")))
            claim = doc;
        else if (dv_str_eq(kind, DV_STR("DeviceClass")) &&
                 dv_decode_json(message, doc, DV_UNKNOWN_DROP, trial->arena, value, NULL, &err))
            (void)dv_api_make(trial, dv_kind(DV_KIND_CLASS), value, &failure); /* may be there */
    }
    if (!claim)
        dv_trial_break(trial, "%.*s: there is no ResourceClaim in it", DV_FMT(path));
    return claim;
}

static const struct dv_json *wanted(struct dv_trial *trial, enum dv_claim_shape shape)
{
    dv_str file = shape == DV_CLAIM_BAD ? trial->options->bad_claim
                  : shape == DV_CLAIM_PLAIN || shape == DV_CLAIM_UNALLOCATED ? trial->options->claim
                                                                             : DV_STR_NONE;
    const struct dv_json *doc;
    struct dv_err err;
    dv_str failure;

    if (file.n > 0)
        return read_file(trial, file);
    if (shape == DV_CLAIM_BAD)
        dv_trial_skip(trial, "no --bad-claim FILE says what the driver has to refuse");
    (void)dv_api_create(trial, DV_KIND_CLASS, DV_STR("metadata: {name: " CLASS "}\nspec: {}\n"),
                        &failure); /* it may be there */
    doc = dv_yaml_parse(own_claim(trial, shape), NULL, trial->arena, &err);
    if (!doc)
        dv_trial_break(trial, "%s", err.msg);
    return doc;
}

/* ---- what is given ---- */

static void on_share_id(void *ctx, char text[DV_UUID_BYTES])
{
    (void)ctx;
    (void)dv_random_uuid(text);
}

static struct dv_inventory *take_inventory(struct dv_trial *trial)
{
    const struct dv_alloc_features features = dv_alloc_features_default();
    struct dv_inventory *inventory = dv_inventory_new(&features);
    static const enum dv_kind_id kinds[] = {DV_KIND_CLASS, DV_KIND_CLAIM};
    struct dv_object **objects;
    size_t n = dv_api_slices(trial, &objects);

    for (size_t i = 0; i < n; i++)
        (void)dv_inventory_add_slice(inventory, objects[i]);
    for (size_t k = 0; k < DV_COUNT(kinds); k++) {
        n = dv_api_list(trial, kinds[k], &objects);
        for (size_t i = 0; i < n; i++) {
            const struct dv_api_resource_claim *claim = objects[i]->value;

            if (kinds[k] == DV_KIND_CLASS)
                dv_inventory_set_class(inventory, objects[i]);
            else if (claim->status.allocation)
                dv_inventory_hold(inventory, claim->status.allocation, claim->metadata.name);
        }
    }
    return inventory;
}

static void allocate(struct dv_trial *trial, const struct dv_object *object,
                     struct dv_test_claim *made)
{
    const struct dv_api_resource_claim *claim = object->value;
    struct dv_api_resource_claim *changed = DV_NEW(trial->arena, struct dv_api_resource_claim);
    struct dv_inventory *inventory = take_inventory(trial);
    const struct dv_alloc_node node = {.name = trial->node};
    const struct dv_alloc_options options = {.share_id = on_share_id};
    struct dv_alloc_result result;
    struct dv_err err = {.code = DV_OK};
    dv_str failure;

    dv_allocate(inventory, &node, &claim, 1, &options, trial->arena, &result, &err);
    if (result.outcome == DV_ALLOC_NONE)
        dv_trial_skip(trial, "the driver's devices do not suffice for its claims");
    if (result.outcome != DV_ALLOC_DONE)
        dv_trial_break(trial, "the claim cannot be allocated: %s", err.msg);
    dv_message_copy(object->kind->versions[0].message, claim, trial->arena, changed);
    changed->status.allocation = DV_NEW(trial->arena, struct dv_api_allocation_result);
    dv_message_copy(&dv_message_allocation_result, &result.allocations[0], trial->arena,
                    changed->status.allocation);
    dv_inventory_free(inventory);
    if (!dv_api_set_status(trial, object, changed, &failure))
        dv_trial_break(trial, "the API does not take the allocation: %.*s", DV_FMT(failure));
    made->allocation = changed->status.allocation;
}

static dv_str next_name(struct dv_trial *trial)
{
    return dv_str_printf(trial->arena, "claim-%zu", ++trial->n_claims);
}

struct dv_test_claim *dv_claim_make(struct dv_dra_link *link, enum dv_claim_shape shape)
{
    struct dv_trial *trial = link->trial;
    struct dv_test_claim *made = DV_NEW(trial->arena, struct dv_test_claim);
    const struct dv_kind *kind = dv_kind(DV_KIND_CLAIM);
    const struct dv_message *message = kind->versions[0].message;
    struct dv_api_resource_claim *value = DV_NEW(trial->arena, struct dv_api_resource_claim);
    struct dv_object *object;
    struct dv_err err;
    dv_str failure;

    if (!trial->facts.has_slices)
        dv_trial_skip(trial, "the driver publishes no slices that a claim could be allocated from");
    if (!dv_decode_json(message, wanted(trial, shape), DV_UNKNOWN_DROP, trial->arena, value, NULL,
                        &err))
        dv_trial_break(trial, "the claim: %s", err.msg);
    value->metadata = (struct dv_api_object_meta){.name = next_name(trial)};
    value->status = (struct dv_api_resource_claim_status){0};
    object = dv_api_make(trial, kind, value, &failure);
    if (!object)
        dv_trial_break(trial, "the API does not take the claim: %.*s", DV_FMT(failure));
    made->name = object->meta->name;
    made->uid = object->meta->uid;
    if (shape != DV_CLAIM_UNALLOCATED)
        allocate(trial, object, made);
    return made;
}

struct dv_test_claim *dv_claim_invent(struct dv_dra_link *link)
{
    struct dv_test_claim *made = DV_NEW(link->trial->arena, struct dv_test_claim);
    char uid[DV_UUID_BYTES];

    made->name = next_name(link->trial);
    made->uid = dv_str_copy(dv_random_uuid(uid), link->trial->arena);
    return made;
}
