#include "cel/plan/policy_types.h"

#include "base/defs.h"
#include "base/str.h"
#include "cel/value/type.h"

#define FIELD(NAME, TYPE)                                                                          \
    {                                                                                              \
        DV_STR_INIT(NAME), (TYPE)                                                                  \
    }
#define OBJECT(NAME, FIELDS)                                                                       \
    {                                                                                              \
        .kind = DV_CEL_T_OBJECT, .name = DV_STR_INIT(NAME), .fields = (FIELDS),                    \
        .n_fields = DV_COUNT(FIELDS)                                                               \
    }
#define LIST(ELEMENT)                                                                              \
    {                                                                                              \
        .kind = DV_CEL_T_LIST, .name = DV_STR_INIT("list"), .params = {(ELEMENT)}, .n_params = 1   \
    }
#define MAP(VALUE)                                                                                 \
    {                                                                                              \
        .kind = DV_CEL_T_MAP, .name = DV_STR_INIT("map"), .params = {&dv_cel_t_string, (VALUE)},   \
        .n_params = 2                                                                              \
    }

static const struct dv_cel_type strings = LIST(&dv_cel_t_string);
static const struct dv_cel_type string_map = MAP(&dv_cel_t_string);
static const struct dv_cel_type strings_map = MAP(&strings);

/* -- The request ----------------------------------------------------------------------------- */

static const struct dv_cel_var kind_fields[] = {
    FIELD("group", &dv_cel_t_string),
    FIELD("version", &dv_cel_t_string),
    FIELD("kind", &dv_cel_t_string),
};
static const struct dv_cel_type kind_type = OBJECT("kubernetes.GroupVersionKind", kind_fields);

static const struct dv_cel_var resource_fields[] = {
    FIELD("group", &dv_cel_t_string),
    FIELD("version", &dv_cel_t_string),
    FIELD("resource", &dv_cel_t_string),
};
static const struct dv_cel_type resource_type =
    OBJECT("kubernetes.GroupVersionResource", resource_fields);

static const struct dv_cel_var user_fields[] = {
    FIELD("username", &dv_cel_t_string),
    FIELD("uid", &dv_cel_t_string),
    FIELD("groups", &strings),
    FIELD("extra", &strings_map),
};
static const struct dv_cel_type user_type = OBJECT("kubernetes.UserInfo", user_fields);

static const struct dv_cel_var request_fields[] = {
    FIELD("kind", &kind_type),
    FIELD("resource", &resource_type),
    FIELD("subResource", &dv_cel_t_string),
    FIELD("requestKind", &kind_type),
    FIELD("requestResource", &resource_type),
    FIELD("requestSubResource", &dv_cel_t_string),
    FIELD("name", &dv_cel_t_string),
    FIELD("namespace", &dv_cel_t_string),
    FIELD("operation", &dv_cel_t_string),
    FIELD("userInfo", &user_type),
    FIELD("dryRun", &dv_cel_t_bool),
    FIELD("options", &dv_cel_t_dyn),
};
const struct dv_cel_type dv_cel_t_request = OBJECT("kubernetes.AdmissionRequest", request_fields);

/* -- The namespace --------------------------------------------------------------------------- */

static const struct dv_cel_var meta_fields[] = {
    FIELD("name", &dv_cel_t_string),
    FIELD("generateName", &dv_cel_t_string),
    FIELD("namespace", &dv_cel_t_string),
    FIELD("labels", &string_map),
    FIELD("annotations", &string_map),
    FIELD("UID", &dv_cel_t_string),
    FIELD("creationTimestamp", &dv_cel_t_timestamp),
    FIELD("deletionGracePeriodSeconds", &dv_cel_t_int),
    FIELD("deletionTimestamp", &dv_cel_t_timestamp),
    FIELD("generation", &dv_cel_t_int),
    FIELD("resourceVersion", &dv_cel_t_string),
    FIELD("finalizers", &strings),
};
static const struct dv_cel_type meta_type = OBJECT("kubernetes.NamespaceMetadata", meta_fields);

static const struct dv_cel_var spec_fields[] = {FIELD("finalizers", &strings)};
static const struct dv_cel_type spec_type = OBJECT("kubernetes.NamespaceSpec", spec_fields);

static const struct dv_cel_var condition_fields[] = {
    FIELD("status", &dv_cel_t_string),
    FIELD("type", &dv_cel_t_string),
    FIELD("lastTransitionTime", &dv_cel_t_timestamp),
    FIELD("message", &dv_cel_t_string),
    FIELD("reason", &dv_cel_t_string),
};
static const struct dv_cel_type condition_type =
    OBJECT("kubernetes.NamespaceCondition", condition_fields);
static const struct dv_cel_type conditions = LIST(&condition_type);

static const struct dv_cel_var status_fields[] = {
    FIELD("conditions", &conditions),
    FIELD("phase", &dv_cel_t_string),
};
static const struct dv_cel_type status_type = OBJECT("kubernetes.NamespaceStatus", status_fields);

static const struct dv_cel_var namespace_fields[] = {
    FIELD("metadata", &meta_type),
    FIELD("spec", &spec_type),
    FIELD("status", &status_type),
};
const struct dv_cel_type dv_cel_t_namespace = OBJECT("kubernetes.Namespace", namespace_fields);

/* -- Variables ------------------------------------------------------------------------------- */

const struct dv_cel_type *dv_cel_variable_type(const struct dv_cel_type *type,
                                               struct dv_arena *arena)
{
    if (type->kind == DV_CEL_T_LIST)
        return dv_cel_list_of(dv_cel_variable_type(type->params[0], arena), arena);
    if (type->kind == DV_CEL_T_MAP)
        return dv_cel_map_of(dv_cel_variable_type(type->params[0], arena),
                             dv_cel_variable_type(type->params[1], arena), arena);
    if (type->kind >= DV_CEL_T_ANY && type->kind <= DV_CEL_T_DURATION) /* the simple ones */
        return type;
    return &dv_cel_t_dyn;
}
