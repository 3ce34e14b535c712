/* validate.c - which rules a kind has. */
#include "resource/validate.h"

#include <stddef.h>

#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

static const struct {
    dv_validate_kind *validate;
    dv_validate_kind *before_update; /* NULL: only the metadata */
} kinds[DV_N_KINDS] = {
    [DV_KIND_POD] = {dv_validate_pod,                       NULL                              },
    [DV_KIND_NODE] = {dv_validate_node,                      NULL                              },
    [DV_KIND_NAMESPACE] = {dv_validate_namespace,                 NULL                              },
    [DV_KIND_EVENT] = {dv_validate_event,                     NULL                              },
    [DV_KIND_SERVICE_ACCOUNT] = {dv_validate_service_account,           NULL                              },
    [DV_KIND_SECRET] = {dv_validate_secret,                    NULL                              },
    [DV_KIND_CONFIG_MAP] = {dv_validate_config_map,                NULL                              },
    [DV_KIND_LEASE] = {dv_validate_lease,                     NULL                              },
    [DV_KIND_CLAIM] = {dv_validate_claim,                     dv_validate_claim_before_update   },
    [DV_KIND_TEMPLATE] = {dv_validate_template,                  dv_validate_template_before_update},
    [DV_KIND_SLICE] = {dv_validate_slice,                     NULL                              },
    [DV_KIND_CLASS] = {dv_validate_class,                     NULL                              },
    [DV_KIND_TAINT_RULE] = {dv_validate_taint_rule,                NULL                              },
    [DV_KIND_RUNTIME_CLASS] = {dv_validate_runtime_class,             NULL                              },
    [DV_KIND_PRIORITY_CLASS] = {dv_validate_priority_class,            NULL                              },
    [DV_KIND_RESOURCE_QUOTA] = {dv_validate_quota,                     NULL                              },
    [DV_KIND_SERVICE] = {dv_validate_service,                   NULL                              },
    [DV_KIND_ENDPOINTS] = {dv_validate_endpoints,                 NULL                              },
    [DV_KIND_ENDPOINT_SLICE] = {dv_validate_endpoint_slice,            NULL                              },
    [DV_KIND_ROLE] = {dv_validate_role,                      NULL                              },
    [DV_KIND_CLUSTER_ROLE] = {dv_validate_cluster_role,              NULL                              },
    [DV_KIND_ROLE_BINDING] = {dv_validate_role_binding,              NULL                              },
    [DV_KIND_CLUSTER_ROLE_BINDING] = {dv_validate_cluster_role_binding,      NULL                              },
    [DV_KIND_DAEMON_SET] = {dv_validate_daemon_set,                NULL                              },
    [DV_KIND_CONTROLLER_REVISION] = {dv_validate_controller_revision,       NULL                              },
    [DV_KIND_VALIDATING_POLICY] = {dv_validate_validating_policy,         NULL                              },
    [DV_KIND_VALIDATING_POLICY_BINDING] = {dv_validate_validating_policy_binding, NULL                              },
    [DV_KIND_VALIDATING_WEBHOOKS] = {dv_validate_validating_webhooks,       NULL                              },
    [DV_KIND_MUTATING_WEBHOOKS] = {dv_validate_mutating_webhooks,         NULL                              },
    [DV_KIND_DEPLOYMENT] = {dv_validate_deployment,                NULL                              },
    [DV_KIND_REPLICA_SET] = {dv_validate_replica_set,               NULL                              },
    [DV_KIND_JOB] = {dv_validate_job,                       NULL                              },
    [DV_KIND_DISRUPTION_BUDGET] = {dv_validate_disruption_budget,         NULL                              },
    [DV_KIND_CUSTOM_DEFINITION] = {dv_validate_metadata,                  NULL                              },
};

void dv_validate(const struct dv_validation *validation, struct dv_problems *problems)
{
    if (validation->kind->id == DV_KIND_CUSTOM)
        dv_validate_metadata(problems, validation);
    else
        kinds[validation->kind->id].validate(problems, validation);
}

/* Metadata is the first member of every object. */
static const struct dv_api_object_meta *meta_of(const void *object)
{
    return object;
}

void dv_validate_before_update(const struct dv_validation *validation, struct dv_problems *problems)
{
    dv_validate_kind *before =
        validation->kind->id == DV_KIND_CUSTOM ? NULL : kinds[validation->kind->id].before_update;

    dv_check_meta_update(problems, meta_of(validation->value), meta_of(validation->old));
    if (before)
        before(problems, validation);
}
