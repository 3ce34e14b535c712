/* auth_node.c - decides what a node's program may ask for: the reference's node authorizer, with
 * its reasons. What depends on the content of a write is in auth_write_node.c. Resources of which
 * only some objects concern a node are decided one by one; all others by the rules at the end,
 * which are the same for every node. */
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

#define LEASE_NAMESPACE "kube-node-lease"

/* ---- by relation ---- */

/* Whether a pod of the node uses the object. */
static bool is_related(const struct dv_auth_question *q)
{
    if (!q->request->name.n)
        return dv_auth_refuse(q, DV_STR("No Object name found"));
    if (q->relations && q->relations->is_of_node(q->relations->ctx, q->node, q->request))
        return true;
    return dv_auth_refuse(
        q, dv_str_printf(q->arena, "no relationship found between node '%.*s' and this object",
                         DV_FMT(q->node)));
}

static bool may_get(const struct dv_auth_question *q)
{
    if (q->verb != DV_MAY_GET)
        return dv_auth_refuse(q, DV_STR("can only get individual resources of this type"));
    if (q->request->subresource.n)
        return dv_auth_refuse(q, DV_STR("cannot get subresource"));
    return is_related(q);
}

/* Decides on secrets and config maps. A name without a namespace is refused: it would name an
 * object in any namespace. */
static bool may_read_text(const struct dv_auth_question *q)
{
    if (!(q->verb & DV_MAY_READ))
        return dv_auth_refuse(q, DV_STR("can only read resources of this type"));
    if (q->request->subresource.n)
        return dv_auth_refuse(q, DV_STR("cannot read subresource"));
    if (!q->request->namespace.n)
        return dv_auth_refuse(q, DV_STR("can only read namespaced object of this type"));
    return is_related(q);
}

static bool may_use_account(const struct dv_auth_question *q)
{
    if (q->verb == DV_MAY_GET && !q->request->subresource.n)
        return is_related(q);
    if (q->verb != DV_MAY_CREATE || !q->request->name.n)
        return dv_auth_refuse(q, DV_STR("can only create tokens for individual service accounts"));
    if (!dv_str_eq(q->request->subresource, DV_STR("token")))
        return dv_auth_refuse(q, DV_STR("can only create token subresource of serviceaccount"));
    return is_related(q);
}

/* ---- its own ---- */

static bool may_use_lease(const struct dv_auth_question *q)
{
    if (!(q->verb & (DV_MAY_GET | DV_MAY_CREATE | DV_MAY_CHANGE | DV_MAY_DELETE)))
        return dv_auth_refuse(
            q, DV_STR("can only get, create, update, patch, or delete a node lease"));
    if (!dv_str_eq(q->request->namespace, DV_STR(LEASE_NAMESPACE)))
        return dv_auth_refuse(
            q, DV_STR("can only access leases in the \"" LEASE_NAMESPACE "\" system namespace"));
    /* a creation has the name only in its body, so it is checked later */
    if (q->verb != DV_MAY_CREATE && !dv_str_eq(q->request->name, q->node))
        return dv_auth_refuse(
            q, DV_STR("can only access node lease with the same name as the requesting node"));
    return true;
}

static bool may_use_slice(const struct dv_auth_question *q)
{
    if (q->request->subresource.n)
        return dv_auth_refuse(q, DV_STR("cannot authorize ResourceSlice subresources"));
    if (q->verb & DV_MAY_MANY)
        return dv_auth_demands(q, "spec.nodeName", q->node) ||
               dv_auth_refuse(q, DV_STR("can only list/watch/deletecollection resourceslices with "
                                        "nodeName field selector"));
    if (q->verb & (DV_MAY_GET | DV_MAY_CHANGE | DV_MAY_DELETE))
        return is_related(q);
    return q->verb == DV_MAY_CREATE ||
           dv_auth_refuse(q, DV_STR("only the following verbs are allowed for a ResourceSlice: "
                                    "get, watch, list, create, update, patch, delete, "
                                    "deletecollection"));
}

static bool may_read_node(const struct dv_auth_question *q)
{
    dv_str name = q->request->name;

    if (dv_str_eq(name, q->node))
        return true;
    if (!name.n)
        return dv_auth_refuse(q, dv_str_printf(q->arena,
                                               "node '%.*s' cannot read all nodes, only its own "
                                               "Node object",
                                               DV_FMT(q->node)));
    return dv_auth_refuse(
        q, dv_str_printf(q->arena, "node '%.*s' cannot read '%.*s', only its own Node object",
                         DV_FMT(q->node), DV_FMT(name)));
}

static bool may_use_node(const struct dv_auth_question *q)
{
    if (dv_str_eq(q->request->subresource, DV_STR("status")))
        return q->verb & DV_MAY_CHANGE;
    if (q->request->subresource.n)
        return false;
    if (q->verb & DV_MAY_READ)
        return may_read_node(q);
    return q->verb & (DV_MAY_CREATE | DV_MAY_CHANGE);
}

static bool may_list_pods(const struct dv_auth_question *q)
{
    if (dv_auth_demands(q, "spec.nodeName", q->node))
        return true;
    if (q->request->name.n)
        return is_related(q);
    return dv_auth_refuse(q, DV_STR("can only list/watch pods with spec.nodeName field selector"));
}

static bool may_use_pod(const struct dv_auth_question *q)
{
    dv_str subresource = q->request->subresource;

    if (dv_str_eq(subresource, DV_STR("status")))
        return q->verb & DV_MAY_CHANGE;
    if (dv_str_eq(subresource, DV_STR("eviction")))
        return q->verb == DV_MAY_CREATE;
    if (subresource.n)
        return false;
    if (q->verb == DV_MAY_GET)
        return may_get(q);
    if (q->verb & (DV_MAY_LIST | DV_MAY_WATCH))
        return may_list_pods(q);
    return q->verb & (DV_MAY_CREATE | DV_MAY_DELETE);
}

/* ---- all of it ---- */

static const struct {
    dv_str group;
    dv_str resource;
    bool (*decide)(const struct dv_auth_question *q);
} kinds[] = {
    {{0},                                DV_STR_INIT("secrets"),         may_read_text  },
    {{0},                                DV_STR_INIT("configmaps"),      may_read_text  },
    {{0},                                DV_STR_INIT("serviceaccounts"), may_use_account},
    {{0},                                DV_STR_INIT("nodes"),           may_use_node   },
    {{0},                                DV_STR_INIT("pods"),            may_use_pod    },
    {DV_STR_INIT("coordination.k8s.io"), DV_STR_INIT("leases"),          may_use_lease  },
    {DV_STR_INIT("resource.k8s.io"),     DV_STR_INIT("resourceclaims"),  may_get        },
    {DV_STR_INIT("resource.k8s.io"),     DV_STR_INIT("resourceslices"),  may_use_slice  },
};

/* These rules do not cover subresources. */
static const struct {
    dv_str group;
    dv_str resource;
    unsigned verbs;
} rules[] = {
    {{0},                                  DV_STR_INIT("events"),                    DV_MAY_CREATE | DV_MAY_CHANGE},
    {DV_STR_INIT("events.k8s.io"),         DV_STR_INIT("events"),                    DV_MAY_CREATE | DV_MAY_CHANGE},
    {{0},                                  DV_STR_INIT("services"),                  DV_MAY_READ                  },
    {{0},                                  DV_STR_INIT("endpoints"),                 DV_MAY_GET                   },
    {DV_STR_INIT("node.k8s.io"),           DV_STR_INIT("runtimeclasses"),            DV_MAY_READ                  },
    {DV_STR_INIT("authentication.k8s.io"), DV_STR_INIT("tokenreviews"),              DV_MAY_CREATE                },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("subjectaccessreviews"),      DV_MAY_CREATE                },
    {DV_STR_INIT("authorization.k8s.io"),  DV_STR_INIT("localsubjectaccessreviews"), DV_MAY_CREATE                },
};

bool dv_auth_decide_node(const struct dv_auth_question *q)
{
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (dv_auth_is_about(q, kinds[i].group, kinds[i].resource))
            return kinds[i].decide(q);
    for (size_t i = 0; i < DV_COUNT(rules); i++)
        if ((rules[i].verbs & q->verb) && !q->request->subresource.n &&
            dv_auth_is_about(q, rules[i].group, rules[i].resource))
            return true;
    return false;
}
