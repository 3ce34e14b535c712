/* describe_pod.c - describes pods, in kubectl's layout. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"

static const struct dv_api_container_status *status_of(const struct dv_api_container_status *list,
                                                       size_t n, dv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(list[i].name, name))
            return &list[i];
    return NULL;
}

/* "Waiting: ImagePullBackOff: message", "Running since 5m", "Terminated: Error, exit code 1" */
static dv_str state_text(const struct dv_describe *d, const struct dv_api_container_state *state)
{
    const struct dv_api_container_state_terminated *end = state->terminated;

    if (state->running)
        return dv_str_printf(d->arena, "Running since %s",
                             dv_describe_age(d, state->running->started_at));
    if (end)
        return dv_str_printf(d->arena, "Terminated: %.*s, exit code %" PRId64 "%s%.*s",
                             DV_FMT(end->reason), end->exit_code, end->message.n ? ": " : "",
                             DV_FMT(end->message));
    if (state->waiting)
        return dv_str_printf(d->arena, "Waiting: %.*s%s%.*s", DV_FMT(state->waiting->reason),
                             state->waiting->message.n ? ": " : "",
                             DV_FMT(state->waiting->message));
    return DV_STR_NONE;
}

static void describe_health(const struct dv_describe *d,
                            const struct dv_api_container_status *status)
{
    for (size_t i = 0; i < status->n_allocated_resources_status; i++) {
        const struct dv_api_resource_status *resource = &status->allocated_resources_status[i];

        dv_describe_line(d, 2, dv_str_to_c(resource->name, d->arena), "%s", "");
        for (size_t k = 0; k < resource->n_resources; k++)
            dv_describe_line(d, 3, dv_str_to_c(resource->resources[k].resource_id, d->arena),
                             "%.*s %.*s", DV_FMT(resource->resources[k].health),
                             DV_FMT(resource->resources[k].message));
    }
}

static void describe_container(const struct dv_describe *d,
                               const struct dv_api_container *container,
                               const struct dv_api_container_status *status)
{
    const struct dv_api_resource_requirements *resources = &container->resources;

    dv_describe_line(d, 1, dv_str_to_c(container->name, d->arena), "%s", "");
    dv_describe_text(d, 2, "Image", container->image);
    dv_describe_text(d, 2, "Command",
                     dv_describe_join(d, container->command, container->n_command));
    dv_describe_text(d, 2, "Args", dv_describe_join(d, container->args, container->n_args));
    if (status) {
        dv_describe_text(d, 2, "State", state_text(d, &status->state));
        dv_describe_text(d, 2, "Last state", state_text(d, &status->last_state));
        dv_describe_line(d, 2, "Ready", "%s", status->ready ? "true" : "false");
        dv_describe_line(d, 2, "Restarts", "%" PRId64, status->restart_count);
    }
    dv_describe_quantities(d, 2, "Requests", resources->requests, resources->n_requests);
    dv_describe_quantities(d, 2, "Limits", resources->limits, resources->n_limits);
    for (size_t i = 0; i < resources->n_claims; i++)
        dv_describe_line(d, 2, "Claim", "%.*s%s%.*s", DV_FMT(resources->claims[i].name),
                         resources->claims[i].request.n ? "/" : "",
                         DV_FMT(resources->claims[i].request));
    if (status && status->n_allocated_resources_status > 0)
        describe_health(d, status);
}

static void describe_containers(const struct dv_describe *d, const char *label,
                                const struct dv_api_container *containers, size_t n,
                                const struct dv_api_container_status *statuses, size_t n_statuses)
{
    if (n > 0)
        dv_describe_line(d, 0, label, "%s", "");
    for (size_t i = 0; i < n; i++)
        describe_container(d, &containers[i], status_of(statuses, n_statuses, containers[i].name));
}

/* The pod's name for a claim, and the claim that it means. */
static void describe_claims(const struct dv_describe *d, const struct dv_api_pod *pod)
{
    const struct dv_api_pod_spec *spec = &pod->spec;

    if (spec->n_resource_claims > 0)
        dv_describe_line(d, 0, "Resource claims", "%s", "");
    for (size_t i = 0; i < spec->n_resource_claims; i++) {
        const struct dv_api_pod_resource_claim *claim = &spec->resource_claims[i];
        dv_str made = claim->resource_claim_name;
        bool is_known = made.n > 0; /* that it is made, or that it is not needed */

        for (size_t k = 0; !is_known && k < pod->status.n_resource_claim_statuses; k++)
            if (dv_str_eq(pod->status.resource_claim_statuses[k].name, claim->name)) {
                made = pod->status.resource_claim_statuses[k].resource_claim_name;
                is_known = true;
            }
        dv_describe_line(d, 1, dv_str_to_c(claim->name, d->arena), "%s%.*s%s%.*s",
                         made.n     ? "resourceclaim/"
                         : is_known ? "not needed"
                                    : "not made yet",
                         DV_FMT(made),
                         claim->resource_claim_template_name.n ? ", from resourceclaimtemplate/"
                                                               : "",
                         DV_FMT(claim->resource_claim_template_name));
    }
}

static void describe_conditions(const struct dv_describe *d, const struct dv_api_pod *pod)
{
    size_t n = pod->status.n_conditions;
    struct dv_describe_condition *conditions =
        DV_NEW_ARRAY(d->arena, struct dv_describe_condition, n);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_pod_condition *from = &pod->status.conditions[i];

        conditions[i] = (struct dv_describe_condition){from->type, from->status, from->reason,
                                                       from->message, from->last_transition_time};
    }
    dv_describe_conditions(d, 0, conditions, n);
}

void dv_describe_pod(const struct dv_describe *d, const struct dv_api_pod *pod)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    const struct dv_api_pod_status *status = &pod->status;

    dv_describe_line(d, 0, "Node", "%.*s",
                     DV_FMT(spec->node_name.n ? spec->node_name : DV_STR("<none>")));
    dv_describe_line(d, 0, "Status", "%.*s",
                     DV_FMT(status->phase.n ? status->phase : DV_STR("Pending")));
    dv_describe_text(d, 0, "Reason", status->reason);
    dv_describe_text(d, 0, "Message", status->message);
    dv_describe_text(d, 0, "IP", status->pod_ip);
    dv_describe_text(d, 0, "QoS class", status->qos_class);
    dv_describe_text(d, 0, "Scheduler", spec->scheduler_name);
    if (spec->n_node_selector > 0)
        dv_describe_entries(d, 0, "Node selector", spec->node_selector, spec->n_node_selector);
    describe_containers(d, "Init containers", spec->init_containers, spec->n_init_containers,
                        status->init_container_statuses, status->n_init_container_statuses);
    describe_containers(d, "Containers", spec->containers, spec->n_containers,
                        status->container_statuses, status->n_container_statuses);
    describe_claims(d, pod);
    if (status->extended_resource_claim_status)
        dv_describe_text(d, 0, "Claim of extended resources",
                         status->extended_resource_claim_status->resource_claim_name);
    describe_conditions(d, pod);
}
