/* role_sync.c - ClusterRoles that are made of others: their rules are kept to be those of the roles
 * that their selectors select, whatever anybody writes there. Every change of a ClusterRole may
 * change all of them, also through each other. */
#include <stdbool.h>
#include <stddef.h>

#include "access/access.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "json/json.h"

#define MANAGER "clusterrole-aggregation-controller"

size_t dv_control_role_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

static bool is_made_of_others(const struct dv_object *object)
{
    const struct dv_api_cluster_role *role = object->value;

    return role->aggregation_rule != NULL;
}

void dv_control_cluster_role_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_control *control = ctx;
    const struct dv_object *object;
    size_t at = 0;

    (void)old;
    (void)now;
    while ((object = dv_view_next(control->views[DV_CONTROL_CLUSTER_ROLES], &at)) != NULL)
        if (is_made_of_others(object))
            dv_queue_add(&control->queues[DV_CONTROL_ROLE_QUEUE], DV_STR_NONE, object->meta->name);
}

static bool has_rules(const struct dv_api_cluster_role *role,
                      const struct dv_api_policy_rule *rules, size_t n)
{
    if (role->n_rules != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!dv_message_eq(&dv_message_policy_rule, &role->rules[i], &rules[i]))
            return false;
    return true;
}

/* Finds the rules that the role shall have; they refer to other roles, for this turn. */
static struct dv_api_policy_rule *find_rules(struct dv_control_sync *sync,
                                             const struct dv_api_cluster_role *role, size_t *n)
{
    DV_VEC(const struct dv_api_cluster_role *) all = {0};
    const struct dv_object *object;
    size_t at = 0;

    while ((object = dv_view_next(sync->control->views[DV_CONTROL_CLUSTER_ROLES], &at)) != NULL)
        *dv_vec_add_in(&all, sync->arena) = object->value;
    return dv_access_aggregate(role, all.v, all.n, sync->arena, n);
}

/* Prints what is applied. Rules that are nobody's are left out: those that somebody else has set
 * stay then. */
static struct dv_json *print_patch(struct dv_control_sync *sync,
                                   const struct dv_api_cluster_role *role)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_CLUSTER_ROLE);
    const struct dv_api_cluster_role applied = {
        .metadata = {.name = role->metadata.name}, .rules = role->rules, .n_rules = role->n_rules};
    struct dv_json *doc =
        dv_encode_json(&dv_message_cluster_role, &applied, kind->versions, kind->name, sync->arena);

    if (role->n_rules == 0)
        dv_json_remove(dv_json_get(doc, DV_STR("rules")));
    return doc;
}

/* Refuses to make a role that was deleted meanwhile: what is applied would be all that it has. */
static void admit_if_there(struct dv_request *request, const struct dv_object *old,
                           const void *value, struct dv_problems *problems)
{
    (void)request;
    (void)value;
    if (!old)
        *dv_vec_add_in(problems, problems->arena) = (struct dv_problem){
            DV_PROBLEM_FORBIDDEN, DV_STR("metadata.name"), DV_STR("the role is gone")};
}

static void on_written(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (!failure || failure->code == 409 ||
        !dv_control_get(sync->control, DV_CONTROL_CLUSTER_ROLES, DV_STR_NONE, sync->item.name))
        dv_control_sync_finish(sync); /* the change that was in between has queued it again */
    else
        dv_control_sync_fail(sync, "gather the rules of a ClusterRole", failure);
}

void dv_control_role_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_ROLE_QUEUE]);
    struct dv_object *object =
        dv_control_get(control, DV_CONTROL_CLUSTER_ROLES, DV_STR_NONE, item->name);
    struct dv_api_cluster_role changed;

    if (!object || !is_made_of_others(object)) {
        dv_queue_finish(item);
        return;
    }
    dv_control_sync_begin(sync, control, object);
    changed = *(const struct dv_api_cluster_role *)object->value;
    changed.rules = find_rules(sync, &changed, &changed.n_rules);
    if (has_rules(object->value, changed.rules, changed.n_rules)) {
        dv_control_sync_finish(sync);
        return;
    }
    sync->request = (struct dv_request){.verb = DV_VERB_PATCH,
                                        .kind = object->kind,
                                        .name = sync->object->meta->name,
                                        .patch_type = DV_PATCH_APPLY,
                                        .patch = print_patch(sync, &changed),
                                        .field_manager = DV_STR(MANAGER),
                                        .is_forced = true,
                                        .admit = admit_if_there};
    dv_control_sync_ask(sync, on_written);
}
