/* table.c - the rows of tables: what `kubectl get` shows of an object. */
#include "resource/table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "number/number.h"
#include "resource/answer/table_apps.h"
#include "resource/answer/table_custom.h"
#include "resource/answer/table_pod.h"
#include "resource/answer/table_service.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "json/json.h"

#define CELL_BYTES_MAX (1024u * 1024u)
#define NONE DV_STR("<none>")
#define UNKNOWN DV_STR("<unknown>")

#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

/* A row that is being made. */
struct row {
    struct dv_json *cells;
    struct dv_time now;
    struct dv_arena *arena;
};

/* ---- ages ---- */

/* "3h20m": the second part only when there is one. */
static dv_str print_two(int64_t first, char first_unit, int64_t second, char second_unit,
                        struct dv_arena *arena)
{
    if (second == 0)
        return dv_str_printf(arena, "%" PRId64 "%c", first, first_unit);
    return dv_str_printf(arena, "%" PRId64 "%c%" PRId64 "%c", first, first_unit, second,
                         second_unit);
}

dv_str dv_age_print(int64_t seconds, struct dv_arena *arena)
{
    /* an object may seem to come from the future: clocks may differ by a second */
    if (seconds < -1)
        return DV_STR("<invalid>");
    if (seconds < 0)
        return DV_STR("0s");
    if (seconds < 2 * MINUTE)
        return print_two(seconds, 's', 0, 's', arena);
    if (seconds < 10 * MINUTE)
        return print_two(seconds / MINUTE, 'm', seconds % MINUTE, 's', arena);
    if (seconds < 3 * HOUR)
        return print_two(seconds / MINUTE, 'm', 0, 's', arena);
    if (seconds < 8 * HOUR)
        return print_two(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm', arena);
    if (seconds < 2 * DAY)
        return print_two(seconds / HOUR, 'h', 0, 'm', arena);
    if (seconds < 8 * DAY)
        return print_two(seconds / DAY, 'd', seconds % DAY / HOUR, 'h', arena);
    if (seconds < 2 * YEAR)
        return print_two(seconds / DAY, 'd', 0, 'h', arena);
    if (seconds < 8 * YEAR)
        return print_two(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd', arena);
    return print_two(seconds / YEAR, 'y', 0, 'd', arena);
}

static dv_str age(const struct row *row, struct dv_time time)
{
    int64_t seconds;

    if (!time.is_set)
        return UNKNOWN;
    seconds = row->now.seconds - time.seconds;
    if (row->now.nanos < time.nanos && seconds > 0)
        seconds--;
    return dv_age_print(seconds, row->arena);
}

/* ---- cells ---- */

static void add_text(struct row *row, dv_str text)
{
    dv_json_append(row->cells, dv_json_new_str(text, row->arena));
}

static void add_or(struct row *row, dv_str text, dv_str fallback)
{
    add_text(row, text.n > 0 ? text : fallback);
}

static void add_number(struct row *row, int64_t number)
{
    dv_json_append(row->cells, dv_json_new_i64(number, row->arena));
}

static void add_age(struct row *row, struct dv_time time)
{
    add_text(row, age(row, time));
}

static dv_str kept(struct dv_buf *buf, struct dv_arena *arena)
{
    dv_str text = dv_str_copy(dv_buf_str(buf), arena);

    dv_buf_fini(buf);
    return text;
}

/* ---- kinds ---- */

static void add_pod(struct row *row, const struct dv_object *object)
{
    const struct dv_api_pod *pod = object->value;
    struct dv_pod_columns made = dv_pod_columns(pod, row->now, row->arena);

    add_text(row, pod->metadata.name);
    add_text(row, made.ready);
    add_text(row, made.status);
    add_text(row, made.restarts);
    add_age(row, pod->metadata.creation_timestamp);
    add_or(row, pod->status.n_pod_i_ps > 0 ? pod->status.pod_i_ps[0].ip : DV_STR(""), NONE);
    add_or(row, pod->spec.node_name, NONE);
    add_or(row, pod->status.nominated_node_name, NONE);
    add_text(row, made.gates);
}

static dv_str node_status(const struct dv_api_node *node, struct dv_arena *arena)
{
    dv_str status = DV_STR("Unknown");

    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            status = dv_str_eq(node->status.conditions[i].status, DV_STR("True"))
                         ? DV_STR("Ready")
                         : DV_STR("NotReady");
    if (!node->spec.unschedulable)
        return status;
    return dv_str_printf(arena, "%.*s,SchedulingDisabled", DV_FMT(status));
}

/* The role that a label gives a node; empty when it gives none. */
static dv_str role_of(const struct dv_str_entry *label)
{
    static const dv_str prefix = DV_STR_INIT("node-role.kubernetes.io/");

    if (dv_str_starts_with(label->key, prefix))
        return dv_str_slice(label->key, prefix.n, label->key.n);
    return dv_str_eq(label->key, DV_STR("kubernetes.io/role")) ? label->value : DV_STR("");
}

static dv_str node_roles(const struct dv_api_node *node, struct dv_arena *arena)
{
    const struct dv_api_object_meta *meta = &node->metadata;
    dv_str *roles = DV_NEW_ARRAY(arena, dv_str, meta->n_labels);
    struct dv_buf buf;
    size_t n = 0;

    for (size_t i = 0; i < meta->n_labels; i++) {
        roles[n] = role_of(&meta->labels[i]);
        n += roles[n].n > 0;
    }
    if (n == 0)
        return NONE;
    qsort(roles, n, sizeof(roles[0]), dv_str_compare);
    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && dv_str_eq(roles[i - 1], roles[i]))
            continue;
        dv_buf_add_c(&buf, i > 0 ? "," : "");
        dv_buf_add(&buf, roles[i]);
    }
    return kept(&buf, arena);
}

static dv_str node_address(const struct dv_api_node *node, dv_str type)
{
    for (size_t i = 0; i < node->status.n_addresses; i++)
        if (dv_str_eq(node->status.addresses[i].type, type))
            return node->status.addresses[i].address;
    return NONE;
}

static void add_node(struct row *row, const struct dv_object *object)
{
    const struct dv_api_node *node = object->value;
    const struct dv_api_node_system_info *info = &node->status.node_info;

    add_text(row, node->metadata.name);
    add_text(row, node_status(node, row->arena));
    add_text(row, node_roles(node, row->arena));
    add_age(row, node->metadata.creation_timestamp);
    add_text(row, info->kubelet_version);
    add_text(row, node_address(node, DV_STR("InternalIP")));
    add_text(row, node_address(node, DV_STR("ExternalIP")));
    add_or(row, info->os_image, UNKNOWN);
    add_or(row, info->kernel_version, UNKNOWN);
    add_or(row, info->container_runtime_version, UNKNOWN);
}

static void add_namespace(struct row *row, const struct dv_object *object)
{
    const struct dv_api_namespace *namespace = object->value;

    add_text(row, namespace->metadata.name);
    add_text(row, namespace->status.phase);
    add_age(row, namespace->metadata.creation_timestamp);
}

/* "pod/p1" */
static dv_str event_object(const struct dv_api_event *event, struct dv_arena *arena)
{
    const struct dv_api_object_reference *about = &event->involved_object;
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < about->kind.n; i++) {
        char c = about->kind.p[i];

        dv_buf_add_char(&buf, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    if (about->name.n > 0)
        dv_buf_printf(&buf, "/%.*s", DV_FMT(about->name));
    return kept(&buf, arena);
}

/* "kubelet, node-a" */
static dv_str event_source(const struct dv_api_event *event, struct dv_arena *arena)
{
    dv_str component = event->source.component;
    dv_str host = event->source.host;

    if (component.n == 0)
        component = event->reporting_component;
    if (host.n == 0)
        host = event->reporting_instance;
    if (host.n == 0)
        return component;
    return dv_str_printf(arena, "%.*s, %.*s", DV_FMT(component), DV_FMT(host));
}

static void add_event(struct row *row, const struct dv_object *object)
{
    const struct dv_api_event *event = object->value;
    const struct dv_api_event_series *series = event->series;
    dv_str first =
        age(row, event->first_timestamp.is_set ? event->first_timestamp : event->event_time);
    dv_str last = event->last_timestamp.is_set ? age(row, event->last_timestamp) : first;
    int64_t count = event->count == 0 ? 1 : event->count;

    if (series) {
        last = age(row, series->last_observed_time);
        count = series->count;
    }
    add_text(row, last);
    add_text(row, event->type);
    add_text(row, event->reason);
    add_text(row, event_object(event, row->arena));
    add_text(row, event->involved_object.field_path);
    add_text(row, event_source(event, row->arena));
    add_text(row, dv_str_trim(event->message));
    add_text(row, first);
    add_number(row, count);
    add_text(row, event->metadata.name);
}

static void add_account(struct row *row, const struct dv_object *object)
{
    const struct dv_api_service_account *account = object->value;

    add_text(row, account->metadata.name);
    add_number(row, (int64_t)account->n_secrets);
    add_age(row, account->metadata.creation_timestamp);
}

static void add_secret(struct row *row, const struct dv_object *object)
{
    const struct dv_api_secret *secret = object->value;

    add_text(row, secret->metadata.name);
    add_text(row, secret->type);
    add_number(row, (int64_t)secret->n_data);
    add_age(row, secret->metadata.creation_timestamp);
}

static void add_config_map(struct row *row, const struct dv_object *object)
{
    const struct dv_api_config_map *map = object->value;

    add_text(row, map->metadata.name);
    add_number(row, (int64_t)(map->n_data + map->n_binary_data));
    add_age(row, map->metadata.creation_timestamp);
}

static void add_lease(struct row *row, const struct dv_object *object)
{
    const struct dv_api_lease *lease = object->value;

    add_text(row, lease->metadata.name);
    add_text(row, lease->spec.holder_identity);
    add_age(row, lease->metadata.creation_timestamp);
}

static void add_claim(struct row *row, const struct dv_object *object)
{
    const struct dv_api_resource_claim *claim = object->value;
    const struct dv_api_resource_claim_status *status = &claim->status;
    bool is_deleted = claim->metadata.deletion_timestamp.is_set;
    dv_str state = is_deleted ? DV_STR("deleted") : DV_STR("pending");

    if (status->allocation)
        state = dv_str_printf(row->arena, "%sallocated%s", is_deleted ? "deleted," : "",
                              status->n_reserved_for > 0 ? ",reserved" : "");
    add_text(row, claim->metadata.name);
    add_text(row, state);
    add_age(row, claim->metadata.creation_timestamp);
}

static void add_plain(struct row *row, const struct dv_object *object)
{
    add_text(row, object->meta->name);
    add_age(row, object->meta->creation_timestamp);
}

static void add_slice(struct row *row, const struct dv_object *object)
{
    const struct dv_api_resource_slice *slice = object->value;

    add_text(row, slice->metadata.name);
    add_text(row, slice->spec.node_name);
    add_text(row, slice->spec.driver);
    add_text(row, slice->spec.pool.name);
    add_age(row, slice->metadata.creation_timestamp);
}

static void add_taint_rule(struct row *row, const struct dv_object *object)
{
    const struct dv_api_device_taint_rule *rule = object->value;
    const struct dv_api_device_taint *taint = &rule->spec.taint;

    add_text(row, rule->metadata.name);
    add_text(row, taint->key);
    add_text(row, taint->value);
    add_text(row, taint->effect);
    add_age(row, taint->time_added);
    add_age(row, rule->metadata.creation_timestamp);
}

static void add_runtime_class(struct row *row, const struct dv_object *object)
{
    const struct dv_api_runtime_class *class = object->value;

    add_text(row, class->metadata.name);
    add_text(row, class->handler);
    add_age(row, class->metadata.creation_timestamp);
}

/* Adds what a template has: its containers, their images, and how its pods are found. */
static void add_containers(struct row *row, const struct dv_api_pod_spec *spec,
                           const struct dv_api_label_selector *selector)
{
    add_text(row, dv_container_names_print(spec, row->arena));
    add_text(row, dv_container_images_print(spec, row->arena));
    add_or(row, dv_selector_print(selector, row->arena), NONE);
}

static void add_priority_class(struct row *row, const struct dv_object *object)
{
    const struct dv_api_priority_class *class = object->value;

    add_text(row, class->metadata.name);
    add_number(row, class->value);
    dv_json_append(row->cells, dv_json_new_bool(class->global_default, row->arena));
    add_age(row, class->metadata.creation_timestamp);
    add_text(row, class->preemption_policy);
}

/* Adds "pods: 1/4, ...": what is used of what there may be, of limits or of all else. */
static void add_used(struct row *row, const struct dv_api_resource_quota_status *status,
                     bool is_of_limits)
{
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < status->n_hard; i++) {
        const struct dv_quantity none = {0};
        const struct dv_quantity *used =
            dv_quantity_find(status->used, status->n_used, status->hard[i].key);

        if (dv_str_starts_with(status->hard[i].key, DV_STR("limits.")) != is_of_limits)
            continue;
        dv_buf_printf(&buf, "%s%.*s: ", buf.n ? ", " : "", DV_FMT(status->hard[i].key));
        dv_quantity_print(used ? used : &none, &buf);
        dv_buf_add_char(&buf, '/');
        dv_quantity_print(&status->hard[i].value, &buf);
    }
    add_text(row, kept(&buf, row->arena));
}

static void add_quota(struct row *row, const struct dv_object *object)
{
    const struct dv_api_resource_quota *quota = object->value;

    add_text(row, quota->metadata.name);
    add_used(row, &quota->status, false);
    add_used(row, &quota->status, true);
    add_age(row, quota->metadata.creation_timestamp);
}

static void add_policy(struct row *row, const struct dv_object *object)
{
    const struct dv_api_validating_admission_policy *policy = object->value;
    const struct dv_api_param_kind *kind = policy->spec.param_kind;

    add_text(row, policy->metadata.name);
    add_number(row, (int64_t)policy->spec.n_validations);
    add_text(row, kind ? dv_str_printf(row->arena, "%.*s/%.*s", DV_FMT(kind->api_version),
                                       DV_FMT(kind->kind))
                       : DV_STR("<unset>"));
    add_age(row, policy->metadata.creation_timestamp);
}

static void add_policy_binding(struct row *row, const struct dv_object *object)
{
    const struct dv_api_validating_admission_policy_binding *binding = object->value;
    const struct dv_api_param_ref *params = binding->spec.param_ref;
    dv_str shown = DV_STR("<unset>");

    if (params && params->name.n > 0)
        shown = params->namespace.n > 0
                    ? dv_str_printf(row->arena, "%.*s/%.*s", DV_FMT(params->namespace),
                                    DV_FMT(params->name))
                    : params->name;
    else if (params)
        shown = DV_STR("<selector>");
    add_text(row, binding->metadata.name);
    add_text(row, binding->spec.policy_name);
    add_text(row, shown);
    add_age(row, binding->metadata.creation_timestamp);
}

static void add_validating_webhooks(struct row *row, const struct dv_object *object)
{
    const struct dv_api_validating_webhook_configuration *config = object->value;

    add_text(row, config->metadata.name);
    add_number(row, (int64_t)config->n_webhooks);
    add_age(row, config->metadata.creation_timestamp);
}

static void add_mutating_webhooks(struct row *row, const struct dv_object *object)
{
    const struct dv_api_mutating_webhook_configuration *config = object->value;

    add_text(row, config->metadata.name);
    add_number(row, (int64_t)config->n_webhooks);
    add_age(row, config->metadata.creation_timestamp);
}

static void add_role(struct row *row, const struct dv_object *object)
{
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    dv_api_time_print(object->meta->creation_timestamp, false, &buf);
    add_text(row, object->meta->name);
    add_text(row, kept(&buf, row->arena));
}

/* Adds the names of the subjects of one kind. */
static void add_subjects(struct row *row, const struct dv_api_role_binding *binding, dv_str kind)
{
    bool is_account = dv_str_eq(kind, DV_STR("ServiceAccount"));
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < binding->n_subjects; i++) {
        const struct dv_api_subject *subject = &binding->subjects[i];

        if (!dv_str_eq(subject->kind, kind))
            continue;
        dv_buf_add_c(&buf, buf.n ? ", " : "");
        if (is_account)
            dv_buf_printf(&buf, "%.*s/", DV_FMT(subject->namespace));
        dv_buf_add(&buf, subject->name);
    }
    add_text(row, kept(&buf, row->arena));
}

static void add_binding(struct row *row, const struct dv_object *object)
{
    const struct dv_api_role_binding *binding = object->value;

    add_text(row, binding->metadata.name);
    add_text(row, dv_str_printf(row->arena, "%.*s/%.*s", DV_FMT(binding->role_ref.kind),
                                DV_FMT(binding->role_ref.name)));
    add_age(row, binding->metadata.creation_timestamp);
    add_subjects(row, binding, DV_STR("User"));
    add_subjects(row, binding, DV_STR("Group"));
    add_subjects(row, binding, DV_STR("ServiceAccount"));
}

static void add_daemon_set(struct row *row, const struct dv_object *object)
{
    const struct dv_api_daemon_set *set = object->value;
    const struct dv_api_daemon_set_status *status = &set->status;

    add_text(row, set->metadata.name);
    add_number(row, status->desired_number_scheduled);
    add_number(row, status->current_number_scheduled);
    add_number(row, status->number_ready);
    add_number(row, status->updated_number_scheduled);
    add_number(row, status->number_available);
    add_or(row,
           dv_labels_print(set->spec.template.spec.node_selector,
                           set->spec.template.spec.n_node_selector, row->arena),
           NONE);
    add_age(row, set->metadata.creation_timestamp);
    add_containers(row, &set->spec.template.spec, set->spec.selector);
}

static void add_deployment(struct row *row, const struct dv_object *object)
{
    const struct dv_api_deployment *deployment = object->value;
    const struct dv_api_deployment_status *status = &deployment->status;
    int64_t wanted = deployment->spec.replicas ? *deployment->spec.replicas : 0;

    add_text(row, deployment->metadata.name);
    add_text(row,
             dv_str_printf(row->arena, "%" PRId64 "/%" PRId64, status->ready_replicas, wanted));
    add_number(row, status->updated_replicas);
    add_number(row, status->available_replicas);
    add_age(row, deployment->metadata.creation_timestamp);
    add_containers(row, &deployment->spec.template.spec, deployment->spec.selector);
}

static void add_replica_set(struct row *row, const struct dv_object *object)
{
    const struct dv_api_replica_set *set = object->value;

    add_text(row, set->metadata.name);
    add_number(row, set->spec.replicas ? *set->spec.replicas : 0);
    add_number(row, set->status.replicas);
    add_number(row, set->status.ready_replicas);
    add_age(row, set->metadata.creation_timestamp);
    add_containers(row, &set->spec.template.spec, set->spec.selector);
}

static void add_job(struct row *row, const struct dv_object *object)
{
    const struct dv_api_job *job = object->value;
    struct dv_time from = job->status.start_time;
    struct dv_time to = job->status.completion_time.is_set ? job->status.completion_time : row->now;

    add_text(row, job->metadata.name);
    add_text(row, dv_job_status_cell(job));
    add_text(row, dv_job_completions_cell(job, row->arena));
    add_text(row, from.is_set ? dv_age_print(to.seconds - from.seconds, row->arena) : DV_STR(""));
    add_age(row, job->metadata.creation_timestamp);
    add_containers(row, &job->spec.template.spec, job->spec.selector);
}

static void add_controller_revision(struct row *row, const struct dv_object *object)
{
    const struct dv_api_controller_revision *revision = object->value;

    add_text(row, revision->metadata.name);
    add_or(row, dv_controller_print(&revision->metadata, row->arena), NONE);
    add_number(row, revision->revision);
    add_age(row, revision->metadata.creation_timestamp);
}

static void add_service(struct row *row, const struct dv_object *object)
{
    const struct dv_api_service *service = object->value;

    add_text(row, service->metadata.name);
    add_text(row, service->spec.type);
    add_text(row, service->spec.cluster_ip.n > 0 ? service->spec.cluster_ip : NONE);
    add_text(row, dv_service_external_cell(service, row->arena));
    add_text(row, dv_service_ports_cell(service, row->arena));
    add_age(row, service->metadata.creation_timestamp);
    add_text(row, dv_service_selector_cell(service, row->arena));
}

static void add_endpoints(struct row *row, const struct dv_object *object)
{
    const struct dv_api_endpoints *endpoints = object->value;

    add_text(row, endpoints->metadata.name);
    add_text(row, dv_endpoints_cell(endpoints, row->arena));
    add_age(row, endpoints->metadata.creation_timestamp);
}

static void add_endpoint_slice(struct row *row, const struct dv_object *object)
{
    const struct dv_api_endpoint_slice *slice = object->value;

    add_text(row, slice->metadata.name);
    add_text(row, slice->address_type);
    add_text(row, dv_endpoint_slice_ports_cell(slice, row->arena));
    add_text(row, dv_endpoint_slice_endpoints_cell(slice, row->arena));
    add_age(row, slice->metadata.creation_timestamp);
}

static void add_amount(struct row *row, const struct dv_int_or_str *amount)
{
    if (!amount)
        add_text(row, DV_STR("N/A"));
    else if (amount->is_text)
        add_text(row, amount->text);
    else
        add_text(row, dv_str_printf(row->arena, "%" PRId64, amount->number));
}

static void add_budget(struct row *row, const struct dv_object *object)
{
    const struct dv_api_pod_disruption_budget *budget = object->value;

    add_text(row, budget->metadata.name);
    add_amount(row, budget->spec.min_available);
    add_amount(row, budget->spec.max_unavailable);
    add_number(row, budget->status.disruptions_allowed);
    add_age(row, budget->metadata.creation_timestamp);
}

static void add_definition(struct row *row, const struct dv_object *object)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 64);
    dv_api_time_print(object->meta->creation_timestamp, false, &buf);
    add_text(row, object->meta->name);
    add_text(row, dv_buf_str(&buf));
}

struct dv_json *dv_table_cells(const struct dv_object *object, const struct dv_api_version *version,
                               struct dv_time now, struct dv_arena *arena)
{
    static void (*const adders[DV_N_KINDS])(struct row *, const struct dv_object *) = {
        [DV_KIND_POD] = add_pod,
        [DV_KIND_NODE] = add_node,
        [DV_KIND_NAMESPACE] = add_namespace,
        [DV_KIND_EVENT] = add_event,
        [DV_KIND_SERVICE_ACCOUNT] = add_account,
        [DV_KIND_SECRET] = add_secret,
        [DV_KIND_CONFIG_MAP] = add_config_map,
        [DV_KIND_LEASE] = add_lease,
        [DV_KIND_CLAIM] = add_claim,
        [DV_KIND_TEMPLATE] = add_plain,
        [DV_KIND_SLICE] = add_slice,
        [DV_KIND_CLASS] = add_plain,
        [DV_KIND_TAINT_RULE] = add_taint_rule,
        [DV_KIND_RUNTIME_CLASS] = add_runtime_class,
        [DV_KIND_PRIORITY_CLASS] = add_priority_class,
        [DV_KIND_RESOURCE_QUOTA] = add_quota,
        [DV_KIND_DAEMON_SET] = add_daemon_set,
        [DV_KIND_CONTROLLER_REVISION] = add_controller_revision,
        [DV_KIND_SERVICE] = add_service,
        [DV_KIND_ENDPOINTS] = add_endpoints,
        [DV_KIND_ENDPOINT_SLICE] = add_endpoint_slice,
        [DV_KIND_VALIDATING_POLICY] = add_policy,
        [DV_KIND_VALIDATING_POLICY_BINDING] = add_policy_binding,
        [DV_KIND_VALIDATING_WEBHOOKS] = add_validating_webhooks,
        [DV_KIND_MUTATING_WEBHOOKS] = add_mutating_webhooks,
        [DV_KIND_DEPLOYMENT] = add_deployment,
        [DV_KIND_REPLICA_SET] = add_replica_set,
        [DV_KIND_JOB] = add_job,
        [DV_KIND_ROLE] = add_role,
        [DV_KIND_CLUSTER_ROLE] = add_role,
        [DV_KIND_ROLE_BINDING] = add_binding,
        [DV_KIND_CLUSTER_ROLE_BINDING] = add_binding,
        [DV_KIND_DISRUPTION_BUDGET] = add_budget,
        [DV_KIND_CUSTOM_DEFINITION] = add_definition,
    };
    struct row row = {.cells = dv_json_new_array(arena), .now = now, .arena = arena};

    if (dv_kind_is_custom(object->kind)) {
        dv_table_custom(object, dv_custom_version_of(version), now, row.cells, arena);
        return row.cells;
    }
    (void)version; /* all versions of a kind show the same */
    adders[object->kind->id](&row, object);
    return row.cells;
}
