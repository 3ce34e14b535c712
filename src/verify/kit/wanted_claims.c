/* wanted_claims.c - what the claims for the driver under test ask for: what --claim says, or one
 * device of any kind. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "resource/resource.h"
#include "verify/kit/dra_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"
#include "verify/verify.h"
#include "json/json.h"

#define CLAIM_BYTES_MAX (1u << 20)
#define CLASS "verify"

typedef struct dv_api_resource_claim claim_t;

/* ---- files ---- */

/* The object of a document, decoded in the version that it says; NULL: it is of another kind. */
static void *read_object(struct dv_trial *trial, dv_str path, const struct dv_json *doc,
                         enum dv_kind_id id)
{
    const struct dv_api_version *version;
    const struct dv_kind *kind;
    dv_str api_version;
    dv_str group;
    dv_str number;
    dv_str name;
    struct dv_err err;
    void *value;

    if (!dv_json_as_str(dv_json_get(doc, DV_STR("kind")), &name, &err) ||
        !dv_str_eq(name, dv_kind(id)->name))
        return NULL;
    if (!dv_json_as_str(dv_json_get(doc, DV_STR("apiVersion")), &api_version, &err))
        dv_trial_break(trial, "%.*s: a %.*s has no apiVersion", DV_FMT(path), DV_FMT(name));
    dv_api_version_split(api_version, &group, &number);
    kind = dv_kind_by_name(group, number, name, &version);
    if (!kind)
        dv_trial_break(trial, "%.*s: there is no %.*s in %.*s", DV_FMT(path), DV_FMT(name),
                       DV_FMT(api_version));
    value = dv_arena_alloc(trial->arena, version->message->size, version->message->align);
    if (!dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, trial->arena, value, NULL, &err))
        dv_trial_break(trial, "%.*s: %s", DV_FMT(path), err.msg);
    return value;
}

/* A template's spec has what a claim has, and people have more files with templates. */
static claim_t *read_claim(struct dv_trial *trial, dv_str path, const struct dv_json *doc)
{
    const struct dv_api_resource_claim_template *template =
        read_object(trial, path, doc, DV_KIND_TEMPLATE);
    claim_t *claim;

    if (!template)
        return read_object(trial, path, doc, DV_KIND_CLAIM);
    claim = DV_NEW(trial->arena, claim_t);
    claim->spec = template->spec.spec;
    return claim;
}

/* One that cases before this one have made is there already. */
static void make_class(struct dv_trial *trial, dv_str path, struct dv_api_device_class *class)
{
    struct dv_object **classes;
    dv_str failure;
    size_t n;

    if (dv_api_make(trial, dv_kind(DV_KIND_CLASS), class, &failure))
        return;
    n = dv_api_list(trial, DV_KIND_CLASS, &classes);
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(classes[i]->meta->name, class->metadata.name))
            return;
    dv_trial_break(trial, "%.*s: the API does not take the DeviceClass %.*s: %.*s", DV_FMT(path),
                   DV_FMT(class->metadata.name), DV_FMT(failure));
}

/* Makes the classes of a file, and returns its claim. */
static claim_t *read_file(struct dv_trial *trial, dv_str path)
{
    DV_CLEANUP(dv_yaml_stream_freep) struct dv_yaml_stream *stream = NULL;
    claim_t *claim = NULL;
    struct dv_json *doc;
    struct dv_err err;
    dv_str text;

    if (!dv_file_read(path, CLAIM_BYTES_MAX, trial->arena, &text, &err) ||
        !(stream = dv_yaml_stream_new(text, NULL, &err)))
        dv_trial_break(trial, "%s", err.msg);
    for (;;) {
        claim_t *found;
        struct dv_api_device_class *class;

        if (!dv_yaml_stream_next(stream, trial->arena, &doc, &err))
            dv_trial_break(trial, "%.*s: %s", DV_FMT(path), err.msg);
        if (!doc)
            break;
        class = read_object(trial, path, doc, DV_KIND_CLASS);
        if (class)
            make_class(trial, path, class);
        found = read_claim(trial, path, doc);
        claim = found ? found : claim;
    }
    if (!claim)
        dv_trial_break(trial, "%.*s: there is no ResourceClaim or ResourceClaimTemplate in it",
                       DV_FMT(path));
    return claim;
}

/* ---- shapes ---- */

/* For one device of any kind. */
static claim_t *own_claim(struct dv_trial *trial)
{
    const struct dv_message *message = dv_kind(DV_KIND_CLAIM)->versions[0].message;
    claim_t *claim = DV_NEW(trial->arena, claim_t);
    dv_str text = dv_str_printf(trial->arena,
                                "spec: {devices: {requests: [{name: first, exactly: "
                                "{deviceClassName: " CLASS ", selectors: [{cel: {expression: "
                                "'device.driver == \"%s\"'}}]}}]}}\n",
                                trial->facts.name);
    const struct dv_json *doc;
    struct dv_err err;
    dv_str failure;

    (void)dv_api_create(trial, DV_KIND_CLASS, DV_STR("metadata: {name: " CLASS "}\nspec: {}\n"),
                        &failure); /* it may be there */
    doc = dv_yaml_parse(text, NULL, trial->arena, &err);
    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, trial->arena, claim, NULL, &err))
        dv_trial_break(trial, "the claim: %s", err.msg);
    return claim;
}

/* Requests with alternatives cannot have it. */
static void add_admin_access(struct dv_trial *trial, claim_t *claim)
{
    static const bool yes = true;
    struct dv_api_device_claim *devices = &claim->spec.devices;

    for (size_t i = 0; i < devices->n_requests; i++) {
        struct dv_api_exact_device_request *exactly = devices->requests[i].exactly;

        if (!exactly)
            dv_trial_skip(trial, "the claim of --claim has alternatives, which admin access has "
                                 "not");
        exactly->admin_access = &yes;
    }
}

static void add_request(struct dv_trial *trial, claim_t *claim)
{
    struct dv_api_device_claim *devices = &claim->spec.devices;
    size_t n = devices->n_requests;
    struct dv_api_device_request *requests;

    if (n != 1)
        return; /* there are several, or none to repeat */
    requests = DV_NEW_ARRAY(trial->arena, struct dv_api_device_request, n + 1);
    requests[0] = devices->requests[0];
    requests[1] = devices->requests[0];
    requests[1].name = DV_STR("verify-again");
    devices->requests = requests;
    devices->n_requests = n + 1;
}

static bool has_parameters(const struct dv_trial *trial, const claim_t *claim)
{
    const struct dv_api_device_claim *devices = &claim->spec.devices;

    for (size_t i = 0; i < devices->n_config; i++) {
        const struct dv_api_opaque_device_configuration *opaque =
            devices->config[i].device_configuration.opaque;

        if (opaque && dv_str_eq(opaque->driver, dv_str_from_c(trial->facts.name)))
            return true;
    }
    return false;
}

claim_t *dv_claim_wanted(struct dv_trial *trial, enum dv_claim_shape shape)
{
    dv_str file = shape == DV_CLAIM_BAD ? trial->options->bad_claim : trial->options->claim;
    claim_t *claim;

    if (shape == DV_CLAIM_BAD && file.n == 0)
        dv_trial_skip(trial, "no --bad-claim FILE says what the driver has to refuse");
    claim = file.n > 0 ? read_file(trial, file) : own_claim(trial);
    if (shape == DV_CLAIM_CONFIG && !has_parameters(trial, claim))
        dv_trial_skip(trial, "no --claim FILE has parameters for the driver (spec.devices.config)");
    if (shape == DV_CLAIM_ADMIN)
        add_admin_access(trial, claim);
    if (shape == DV_CLAIM_TWO)
        add_request(trial, claim);
    return claim;
}

void dv_claim_check_files(struct dv_trial *trial)
{
    static const enum dv_claim_shape shapes[] = {DV_CLAIM_PLAIN, DV_CLAIM_BAD};
    const dv_str files[] = {trial->options->claim, trial->options->bad_claim};
    dv_str failure;

    for (size_t i = 0; i < DV_COUNT(shapes); i++) {
        claim_t *claim;

        if (files[i].n == 0)
            continue;
        claim = dv_claim_wanted(trial, shapes[i]);
        claim->metadata = (struct dv_api_object_meta){.name = DV_STR("checked")};
        claim->status = (struct dv_api_resource_claim_status){0};
        if (!dv_api_make(trial, dv_kind(DV_KIND_CLAIM), claim, &failure))
            dv_trial_break(trial, "%.*s: the API does not take the claim: %.*s", DV_FMT(files[i]),
                           DV_FMT(failure));
        (void)dv_api_delete(trial, DV_KIND_CLAIM, DV_STR("checked")); /* of our own, just made */
    }
}
