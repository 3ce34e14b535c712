/* validate_pod_update.c - the few things of a pod that may change. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "resource/go_print.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

#define UPDATE_TEXT                                                                                \
    "pod updates may not change fields other than "                                                \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"      \
    "`spec.tolerations` (only additions to existing "                                              \
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "        \
    "previously negative)"

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

static bool check_count(struct dv_problems *problems, const char *name, size_t n, size_t n_old)
{
    if (n == n_old)
        return true;
    dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, name, dv_bad_none(),
                   "pod updates may not add or remove containers");
    return false;
}

static void check_deadline(struct dv_problems *problems, const int64_t *deadline,
                           const int64_t *old)
{
    if (old && !deadline)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "activeDeadlineSeconds",
                       dv_bad_null(), "must not update from a positive integer to nil value");
    else if (old && *deadline > *old)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "activeDeadlineSeconds",
                       dv_bad_i64(*deadline), "must be less than or equal to previous value");
}

/* Makes a text that is equal for tolerations that differ in their seconds only. Any separator could
 * be in the parts, so their lengths are in the text. */
static dv_str toleration_key(const struct dv_api_toleration *toleration, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%zu %zu %zu %.*s%.*s%.*s%.*s", toleration->key.n,
                         toleration->operator.n, toleration->value.n, DV_FMT(toleration->key),
                         DV_FMT(toleration->operator), DV_FMT(toleration->value),
                         DV_FMT(toleration->effect));
}

static void check_tolerations(struct dv_problems *problems, const struct dv_api_pod_spec *spec,
                              const struct dv_api_pod_spec *old)
{
    DV_CLEANUP(dv_map_fini) struct dv_map there;

    dv_map_init(&there);
    for (size_t i = 0; i < spec->n_tolerations && old->n_tolerations > 0; i++)
        (void)dv_map_set(&there, toleration_key(&spec->tolerations[i], problems->arena),
                         &spec->tolerations[i]);
    for (size_t i = 0; i < old->n_tolerations; i++)
        if (!dv_map_get(&there, toleration_key(&old->tolerations[i], problems->arena))) {
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, "tolerations", dv_bad_none(),
                           "existing toleration can not be modified except its tolerationSeconds");
            return;
        }
}

static void check_gates(struct dv_problems *problems, const struct dv_api_pod_spec *spec,
                        const struct dv_api_pod_spec *old)
{
    struct dv_field_path path = dv_path_name(&spec_path, "schedulingGates");
    DV_CLEANUP(dv_map_fini) struct dv_map gates;

    dv_map_init(&gates);
    for (size_t i = 0; i < old->n_scheduling_gates; i++)
        (void)dv_map_set(&gates, old->scheduling_gates[i].name, &old->scheduling_gates[i]);
    for (size_t i = 0; i < spec->n_scheduling_gates; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        dv_str name = spec->scheduling_gates[i].name;

        if (!dv_map_get(&gates, name))
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &item, "name", dv_bad_none(),
                           "only deletion is allowed, but found new scheduling gate '%.*s'",
                           DV_FMT(name));
    }
}

/* Labels may be added to the node selector while a scheduling gate keeps the pod from a node. */
static bool has_all_labels(const struct dv_api_pod_spec *spec, const struct dv_api_pod_spec *old)
{
    for (size_t i = 0; i < old->n_node_selector; i++) {
        const struct dv_str_entry *entry =
            dv_entry_find(spec->node_selector, spec->n_node_selector, old->node_selector[i].key);

        if (!entry || !dv_str_eq(entry->value, old->node_selector[i].value))
            return false;
    }
    return true;
}

static struct dv_api_container *with_old_images(const struct dv_api_container *containers,
                                                const struct dv_api_container *old, size_t n,
                                                struct dv_arena *arena)
{
    struct dv_api_container *copy = DV_NEW_ARRAY(arena, struct dv_api_container, n);

    if (!containers)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        copy[i] = containers[i];
        copy[i].image = old[i].image;
    }
    return copy;
}

/* The new spec with the old values of the fields that may change: any other difference is
 * forbidden. */
static struct dv_api_pod_spec without_allowed(const struct dv_api_pod_spec *spec,
                                              const struct dv_api_pod_spec *old,
                                              struct dv_arena *arena)
{
    struct dv_api_pod_spec rest = *spec;
    const int64_t *grace = spec->termination_grace_period_seconds;
    const int64_t *old_grace = old->termination_grace_period_seconds;

    rest.containers = with_old_images(spec->containers, old->containers, old->n_containers, arena);
    rest.init_containers =
        with_old_images(spec->init_containers, old->init_containers, old->n_init_containers, arena);
    rest.active_deadline_seconds = old->active_deadline_seconds;
    rest.tolerations = old->tolerations;
    rest.n_tolerations = old->n_tolerations;
    rest.scheduling_gates = old->scheduling_gates;
    rest.n_scheduling_gates = old->n_scheduling_gates;
    rest.service_account = old->service_account; /* another name for serviceAccountName */
    rest.unknown = old->unknown;
    if (grace && *grace == 1 && old_grace && *old_grace < 0)
        rest.termination_grace_period_seconds = old_grace;
    if (old->n_scheduling_gates > 0 && has_all_labels(spec, old)) {
        rest.node_selector = old->node_selector;
        rest.n_node_selector = old->n_node_selector;
    }
    return rest;
}

static dv_str print_spec(const struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    static const struct dv_json_style style = {.indent = 1, .escape_html = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_json_print(dv_go_value(&dv_message_pod_spec, spec, arena), &style, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

void dv_check_pod_update(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf diff;
    const struct dv_api_pod_spec *spec = &pod->spec;
    struct dv_api_pod_spec rest;

    dv_buf_init(&diff, TEXT_BYTES_MAX);
    if (!check_count(problems, "containers", spec->n_containers, old->spec.n_containers) ||
        !check_count(problems, "initContainers", spec->n_init_containers,
                     old->spec.n_init_containers))
        return;
    check_deadline(problems, spec->active_deadline_seconds, old->spec.active_deadline_seconds);
    check_gates(problems, spec, &old->spec);
    check_tolerations(problems, spec, &old->spec);
    rest = without_allowed(spec, &old->spec, problems->arena);
    if (dv_message_eq(&dv_message_pod_spec, &rest, &old->spec))
        return;
    dv_diff_lines(print_spec(&old->spec, problems->arena), print_spec(&rest, problems->arena),
                  &diff);
    dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, NULL, dv_bad_none(), "%s\n%.*s",
                   UPDATE_TEXT, DV_FMT(dv_buf_str(&diff)));
}
