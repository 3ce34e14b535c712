/* auth_claim.c - decides what of a claim's status a user may change who may change the status at
 * all: status.allocation and status.reservedFor are for those who bind claims, and entries of
 * status.devices for those who may speak for their drivers, on their own node or anywhere. The
 * rights are asked for by names that no path serves, resourceclaims/binding and
 * resourceclaims/driver, so that an administrator can give them by roles. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

#define SERVICE_ACCOUNT_PREFIX "system:serviceaccount:"

struct check {
    const struct dv_api_user_info *user;
    const struct dv_auth_request *request;
    const struct dv_auth_rights *rights;
    struct dv_problems *problems;
};

static void add_problem(const struct check *check, const char *field, dv_str detail)
{
    *dv_vec_add_in(check->problems, check->problems->arena) = (struct dv_problem){
        DV_PROBLEM_FORBIDDEN, dv_str_from_c(field),
        dv_str_printf(check->problems->arena, "Forbidden: %.*s", DV_FMT(detail))};
}

/* Asks for a right on a part of claims. *refusal is set to the reference's sentence. */
static bool may(const struct check *check, dv_str verb, const char *part, dv_str namespace,
                dv_str name, dv_str *refusal)
{
    struct dv_arena *arena = check->problems->arena;
    struct dv_auth_request asked = {.verb = verb,
                                    .group = check->request->group,
                                    .resource = check->request->resource,
                                    .subresource = dv_str_from_c(part),
                                    .namespace = namespace,
                                    .name = name};
    dv_str quoted = name.n ? dv_str_printf(arena, " \"%.*s\"", DV_FMT(name)) : DV_STR("");
    dv_str reason = DV_STR_NONE;

    if (check->rights->may(check->rights->ctx, &asked, &reason))
        return true;
    *refusal = dv_str_printf(arena, "%.*s.%.*s%.*s is forbidden: %.*s", DV_FMT(asked.resource),
                             DV_FMT(asked.group), DV_FMT(quoted),
                             DV_FMT(dv_auth_refusal(check->user, &asked, reason, arena)));
    return false;
}

static void check_binding(const struct check *check, const struct dv_api_resource_claim_status *was,
                          const struct dv_api_resource_claim_status *is)
{
    struct dv_api_resource_claim_status a = *was, b = *is;
    dv_str verb = check->request->verb;
    dv_str refusal;

    a.n_devices = b.n_devices = 0;
    a.devices = b.devices = NULL;
    if (dv_message_eq(&dv_message_resource_claim_status, &a, &b) ||
        may(check, verb, "binding", DV_STR_NONE, DV_STR_NONE, &refusal))
        return;
    add_problem(check, "status.allocation",
                dv_str_printf(check->problems->arena,
                              "changing status.allocation or status.reservedFor requires "
                              "resource=\"resourceclaims/binding\", verb=\"%.*s\" permission: "
                              "%.*s",
                              DV_FMT(verb), DV_FMT(refusal)));
}

/* ---- devices ---- */

/* The one node that an allocation is for; empty if it is for several. */
static dv_str node_of(const struct dv_api_allocation_result *allocation)
{
    const struct dv_api_node_selector *selector = allocation ? allocation->node_selector : NULL;
    const struct dv_api_node_selector_term *term;
    const struct dv_api_node_selector_requirement *field;

    if (!selector || selector->n_node_selector_terms != 1)
        return DV_STR_NONE;
    term = &selector->node_selector_terms[0];
    if (term->n_match_expressions > 0 || term->n_match_fields != 1)
        return DV_STR_NONE;
    field = &term->match_fields[0];
    if (!dv_str_eq(field->key, DV_STR("metadata.name")) ||
        !dv_str_eq(field->operator, DV_STR("In")) || field->n_values != 1)
        return DV_STR_NONE;
    return field->values[0];
}

static bool is_on_node(const struct dv_api_user_info *user, dv_str node)
{
    struct dv_strs nodes = dv_auth_extra(user, DV_STR(DV_EXTRA_NODE));

    return node.n > 0 && dv_str_starts_with(user->username, DV_STR(SERVICE_ACCOUNT_PREFIX)) &&
           nodes.n == 1 && dv_str_eq(nodes.v[0], node);
}

static void check_driver(const struct check *check, dv_str driver, bool is_near)
{
    struct dv_arena *arena = check->problems->arena;
    dv_str near = dv_str_printf(arena, "associated-node:%.*s", DV_FMT(check->request->verb));
    dv_str any = dv_str_printf(arena, "arbitrary-node:%.*s", DV_FMT(check->request->verb));
    dv_str namespace = check->request->namespace;
    dv_str refusal, ignored;

    if (is_near && (may(check, near, "driver", namespace, driver, &refusal) ||
                    may(check, any, "driver", namespace, driver, &ignored)))
        return;
    if (!is_near && may(check, any, "driver", namespace, driver, &refusal))
        return;
    add_problem(
        check, "status.devices",
        dv_str_printf(arena,
                      "changing status.devices requires resource=\"resourceclaims/driver\", "
                      "verb=\"[%.*s%s%.*s]\" permission: %.*s",
                      DV_FMT(is_near ? near : DV_STR("")), is_near ? " " : "", DV_FMT(any),
                      DV_FMT(refusal)));
}

static bool has_same(const struct dv_api_resource_claim_status *status,
                     const struct dv_api_allocated_device_status *device)
{
    const struct dv_api_allocated_device_status *other = dv_auth_find_device(status, device);

    return other && dv_message_eq(&dv_message_allocated_device_status, device, other);
}

/* Adds the drivers of entries in `a` that are not the same in `b`, each once. */
static size_t add_changed(const struct dv_api_resource_claim_status *a,
                          const struct dv_api_resource_claim_status *b, dv_str *drivers, size_t n)
{
    for (size_t i = 0; i < a->n_devices; i++) {
        size_t k = 0;

        if (has_same(b, &a->devices[i]))
            continue;
        while (k < n && !dv_str_eq(drivers[k], a->devices[i].driver))
            k++;
        if (k == n)
            drivers[n++] = a->devices[i].driver;
    }
    return n;
}

static void check_devices(const struct check *check, const struct dv_api_resource_claim_status *was,
                          const struct dv_api_resource_claim_status *is)
{
    bool is_near = is_on_node(check->user, node_of(is->allocation));
    dv_str *drivers;
    size_t n;

    if (!is->allocation) /* the entries go with the allocation */
        return;
    if (is->n_devices > DV_STATUS_DEVICES_MAX)
        return; /* refused for that, and not compared */
    drivers = DV_NEW_ARRAY(check->problems->arena, dv_str, was->n_devices + is->n_devices);
    n = add_changed(is, was, drivers, 0);
    n = add_changed(was, is, drivers, n);
    qsort(drivers, n, sizeof(drivers[0]), dv_str_compare);
    for (size_t i = 0; i < n; i++)
        check_driver(check, drivers[i], is_near);
}

void dv_auth_check_claim(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                         const struct dv_auth_change *change, const struct dv_auth_rights *rights,
                         struct dv_problems *problems)
{
    const struct check check = {
        .user = user, .request = request, .rights = rights, .problems = problems};
    const struct dv_api_resource_claim *old = change->old ? change->old->value : NULL;
    const struct dv_api_resource_claim *claim = change->value;

    if (!old || !claim || !dv_str_eq(request->resource, DV_STR("resourceclaims")) ||
        !dv_str_eq(request->subresource, DV_STR("status")))
        return;
    check_binding(&check, &old->status, &claim->status);
    check_devices(&check, &old->status, &claim->status);
}
