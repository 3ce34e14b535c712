#include "lib/dra/dra_claim.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "davit/dra.h"
#include "resource/resource.h"

/* More bytes than any object that a server accepts. */
#define CLAIM_BYTES_MAX (16u << 20)

dv_str dv_lib_base_request(dv_str request)
{
    return dv_str_slice(request, 0, dv_str_find_char(request, '/'));
}

bool davit_dra_config_is_for(const struct davit_dra_config *config, const char *request)
{
    dv_str name = dv_str_from_c(request);

    for (size_t i = 0; i < config->n_requests; i++) {
        dv_str wanted = dv_str_from_c(config->requests[i]);

        if (dv_str_eq(wanted, name) || dv_str_eq(wanted, dv_lib_base_request(name)))
            return true;
    }
    return config->n_requests == 0;
}

static const char *print_json(const struct dv_message *message, const void *value,
                              const struct dv_api_version *version, dv_str kind,
                              struct dv_arena *arena)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, CLAIM_BYTES_MAX);
    dv_encode_json_text(message, value, version, kind, &buf);
    text = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void view_results(const struct dv_api_device_allocation_result *devices, dv_str driver,
                         struct dv_arena *arena, struct davit_dra_claim *view)
{
    struct davit_dra_result *results =
        DV_NEW_ARRAY(arena, struct davit_dra_result, devices->n_results);

    for (size_t i = 0; i < devices->n_results; i++) {
        const struct dv_api_device_request_allocation_result *from = &devices->results[i];

        if (!dv_str_eq(from->driver, driver))
            continue;
        results[view->n_results++] = (struct davit_dra_result){
            .request = dv_str_to_c(from->request, arena),
            .pool = dv_str_to_c(from->pool, arena),
            .device = dv_str_to_c(from->device, arena),
            .share_id = from->share_id.p ? dv_str_to_c(from->share_id, arena) : NULL,
            .is_admin = from->admin_access && *from->admin_access,
            .json = print_json(&dv_message_device_request_allocation_result, from, NULL,
                               DV_STR_NONE, arena),
        };
    }
    view->results = results;
}

static void view_configs(const struct dv_api_device_allocation_result *devices, dv_str driver,
                         struct dv_arena *arena, struct davit_dra_claim *view)
{
    struct davit_dra_config *configs =
        DV_NEW_ARRAY(arena, struct davit_dra_config, devices->n_config);

    for (size_t i = 0; i < devices->n_config; i++) {
        const struct dv_api_device_allocation_configuration *from = &devices->config[i];
        const struct dv_api_opaque_device_configuration *opaque = from->device_configuration.opaque;
        const char **requests;

        if (!opaque || !dv_str_eq(opaque->driver, driver))
            continue;
        requests = DV_NEW_ARRAY(arena, const char *, from->n_requests);
        for (size_t k = 0; k < from->n_requests; k++)
            requests[k] = dv_str_to_c(from->requests[k], arena);
        configs[view->n_configs++] = (struct davit_dra_config){
            .is_from_class = dv_str_eq(from->source, DV_STR("FromClass")),
            .requests = requests,
            .n_requests = from->n_requests,
            .parameters = dv_str_to_c(opaque->parameters, arena),
        };
    }
    view->configs = configs;
}

bool dv_lib_claim_view(const struct dv_api_resource_claim *claim, dv_str driver, dv_str uid,
                       struct dv_arena *arena, struct davit_dra_claim *view, struct dv_err *err)
{
    const struct dv_api_object_meta *meta = &claim->metadata;
    const struct dv_kind *kind = dv_kind(DV_KIND_CLAIM);

    if (!claim->status.allocation)
        return dv_fail(err, DV_FAILED_PRECONDITION, "claim %.*s/%.*s not allocated",
                       DV_FMT(meta->namespace), DV_FMT(meta->name));
    if (!dv_str_eq(meta->uid, uid))
        return dv_fail(err, DV_FAILED_PRECONDITION, "claim %.*s/%.*s got replaced",
                       DV_FMT(meta->namespace), DV_FMT(meta->name));
    *view = (struct davit_dra_claim){
        .ref = {dv_str_to_c(meta->namespace, arena), dv_str_to_c(meta->name, arena),
                dv_str_to_c(meta->uid, arena)},
        .json = print_json(kind->versions[0].message, claim, &kind->versions[0], kind->name, arena),
    };
    view_results(&claim->status.allocation->devices, driver, arena, view);
    view_configs(&claim->status.allocation->devices, driver, arena, view);
    return true;
}
