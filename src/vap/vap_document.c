#include "vap/vap_document.h"

#include "base/str.h"
#include "resource/cel_document.h"
#include "resource/resource.h"
#include "vap/vap.h"
#include "json/json.h"

const struct dv_cel_val *dv_vap_from_object(const struct dv_message *message, const void *value,
                                            const struct dv_api_version *version, dv_str kind,
                                            struct dv_arena *arena)
{
    return dv_cel_from_json(dv_encode_json(message, value, version, kind, arena), arena);
}

/* ---- the request ---- */

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

/* Sets what the reference leaves out when it is empty. */
static void set_filled(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        set_text(object, key, text, arena);
}

static void set_triple(struct dv_json *request, const char *key,
                       const struct dv_api_version *version, const char *last, dv_str name,
                       struct dv_arena *arena)
{
    struct dv_json *triple = dv_json_new_object(arena);

    set_text(triple, "group", version->group, arena);
    set_text(triple, "version", version->version, arena);
    set_text(triple, last, name, arena);
    dv_json_set(request, dv_str_from_c(key), triple, arena);
}

static void set_kinds(struct dv_json *request, const struct dv_vap_write *write,
                      const struct dv_api_version *version, struct dv_arena *arena)
{
    bool is_other = write->other != NULL;
    dv_str kind = is_other ? write->other_kind : write->kind->name;

    set_triple(request, "kind", is_other ? write->other_version : version, "kind", kind, arena);
    set_triple(request, "resource", version, "resource", write->kind->plural, arena);
    set_filled(request, "subResource", write->subresource, arena);
    set_triple(request, "requestKind", is_other ? write->other_version : write->version, "kind",
               kind, arena);
    set_triple(request, "requestResource", write->version, "resource", write->kind->plural, arena);
    set_filled(request, "requestSubResource", write->subresource, arena);
}

struct dv_json *dv_vap_request(const struct dv_vap_write *write,
                               const struct dv_api_version *version, struct dv_arena *arena)
{
    static const char *const operations[] = {
        [DV_VAP_CREATE] = "CREATE",
        [DV_VAP_UPDATE] = "UPDATE",
        [DV_VAP_DELETE] = "DELETE",
        [DV_VAP_CONNECT] = "CONNECT",
    };
    struct dv_json *request = dv_json_new_object(arena);

    set_kinds(request, write, version, arena);
    set_filled(request, "name", write->name, arena);
    set_filled(request, "namespace", write->namespace, arena);
    set_text(request, "operation", dv_str_from_c(operations[write->operation]), arena);
    dv_json_set(request, DV_STR("userInfo"),
                dv_encode_json(&dv_message_user_info, write->user, NULL, DV_STR_NONE, arena),
                arena);
    dv_json_set(request, DV_STR("dryRun"), dv_json_new_bool(write->is_dry_run, arena), arena);
    if (write->options)
        dv_json_set(request, DV_STR("options"), dv_json_copy(write->options, arena), arena);
    return request;
}
