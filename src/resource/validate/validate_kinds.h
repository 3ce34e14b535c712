/* validate_kinds.h - the rules of each kind, for the table in validate.c. */
#ifndef DV_RESOURCE_VALIDATE_KINDS_H
#define DV_RESOURCE_VALIDATE_KINDS_H

struct dv_problems;
struct dv_validation;

typedef void dv_validate_kind(struct dv_problems *problems, const struct dv_validation *what);

dv_validate_kind dv_validate_pod;
dv_validate_kind dv_validate_node;
dv_validate_kind dv_validate_namespace;
dv_validate_kind dv_validate_event;
dv_validate_kind dv_validate_service_account;
dv_validate_kind dv_validate_secret;
dv_validate_kind dv_validate_config_map;
dv_validate_kind dv_validate_lease;
dv_validate_kind dv_validate_claim;
dv_validate_kind dv_validate_template;
dv_validate_kind dv_validate_slice;
dv_validate_kind dv_validate_class;
dv_validate_kind dv_validate_taint_rule;
dv_validate_kind dv_validate_runtime_class;
dv_validate_kind dv_validate_priority_class;
dv_validate_kind dv_validate_quota;
dv_validate_kind dv_validate_service;
dv_validate_kind dv_validate_endpoints;
dv_validate_kind dv_validate_endpoint_slice;
dv_validate_kind dv_validate_validating_policy;
dv_validate_kind dv_validate_validating_policy_binding;
dv_validate_kind dv_validate_validating_webhooks;
dv_validate_kind dv_validate_mutating_webhooks;
dv_validate_kind dv_validate_role;
dv_validate_kind dv_validate_cluster_role;
dv_validate_kind dv_validate_role_binding;
dv_validate_kind dv_validate_cluster_role_binding;
dv_validate_kind dv_validate_daemon_set;
dv_validate_kind dv_validate_controller_revision;
dv_validate_kind dv_validate_deployment;
dv_validate_kind dv_validate_replica_set;
dv_validate_kind dv_validate_job;
dv_validate_kind dv_validate_disruption_budget;
/* Of kinds that custom/ knows the rest of. */
dv_validate_kind dv_validate_metadata;

/* What is checked once more before an update, beside the metadata. */
dv_validate_kind dv_validate_claim_before_update;
dv_validate_kind dv_validate_template_before_update;

#endif
