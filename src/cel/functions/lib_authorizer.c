/* lib_authorizer.c - questions to the authorizer: put together step by step, each step a new value,
 * and asked by check(). */
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "cel/check/decls.h"
#include "cel/value/cel_authz.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

/* A copy of the value, of that kind, which may be changed. */
static struct dv_cel_authz *next(struct dv_cel_run *run, const struct dv_cel_val *from,
                                 enum dv_cel_kind kind, struct dv_cel_val *out)
{
    struct dv_cel_authz *authz = DV_NEW(run->arena, struct dv_cel_authz);

    *authz = *from->authz;
    *out = (struct dv_cel_val){.kind = (uint8_t)kind, .authz = authz};
    return authz;
}

static void fn_path(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    if (args[1].s.n == 0)
        *out = dv_cel_error(DV_STR("path must not be empty"));
    else
        next(run, args, DV_CEL_PATH_CHECK, out)->check.path = args[1].s;
}

static void fn_group(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    next(run, args, DV_CEL_GROUP_CHECK, out)->check.group = args[1].s;
}

static void fn_account(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    struct dv_cel_authz *authz;

    if (args[1].s.n == 0 || args[2].s.n == 0) {
        *out = dv_cel_error(args[1].s.n == 0 ? DV_STR("Invalid service account namespace")
                                             : DV_STR("Invalid service account name"));
        return;
    }
    authz = next(run, args, DV_CEL_AUTHORIZER, out);
    authz->check.account_namespace = args[1].s;
    authz->check.account_name = args[2].s;
}

static void fn_resource(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    if (args[1].s.n == 0)
        *out = dv_cel_error(DV_STR("resource must not be empty"));
    else
        next(run, args, DV_CEL_RESOURCE_CHECK, out)->check.resource = args[1].s;
}

#define FN_SETS(NAME, FIELD)                                                                       \
    static void NAME(struct dv_cel_run *run, const struct dv_cel_val *args,                        \
                     struct dv_cel_val *out)                                                       \
    {                                                                                              \
        next(run, args, DV_CEL_RESOURCE_CHECK, out)->check.FIELD = args[1].s;                      \
    }

FN_SETS(fn_subresource, subresource)
FN_SETS(fn_namespace, namespace)
FN_SETS(fn_name, name)
FN_SETS(fn_field_selector, field_selector)
FN_SETS(fn_label_selector, label_selector)

static void fn_check(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_authz *authz = next(run, args, DV_CEL_DECISION, out);

    authz->check.verb = args[1].s;
    if (!authz->authorizer->decide(authz->authorizer->ctx, &authz->check, run->arena,
                                   &authz->decision))
        dv_cel_run_stop(run, DV_CEL_FAULT_CANCELLED, out);
}

static void fn_errored(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(args[0].authz->decision.error.n > 0);
}

static void fn_error(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(args[0].authz->decision.error);
}

static void fn_allowed(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(args[0].authz->decision.is_allowed);
}

static void fn_reason(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_string(args[0].authz->decision.reason);
}

#define MEMBER DV_CEL_COST_MEMBER
#define POLICY DV_CEL_FN_POLICY

static const struct dv_cel_overload rows[] = {
    {"path",           ".as>p",  fn_path,           MEMBER,                POLICY},
    {"group",          ".as>g",  fn_group,          MEMBER,                POLICY},
    {"serviceAccount", ".ass>a", fn_account,        MEMBER,                POLICY},
    {"resource",       ".gs>r",  fn_resource,       MEMBER,                POLICY},
    {"subresource",    ".rs>r",  fn_subresource,    MEMBER,                POLICY},
    {"namespace",      ".rs>r",  fn_namespace,      MEMBER,                POLICY},
    {"name",           ".rs>r",  fn_name,           MEMBER,                POLICY},
    {"fieldSelector",  ".rs>r",  fn_field_selector, DV_CEL_COST_SELECTOR,  POLICY},
    {"labelSelector",  ".rs>r",  fn_label_selector, DV_CEL_COST_SELECTOR,  POLICY},
    {"check",          ".ps>e",  fn_check,          DV_CEL_COST_AUTHORIZE, POLICY},
    {"check",          ".rs>e",  fn_check,          DV_CEL_COST_AUTHORIZE, POLICY},
    {"errored",        ".e>b",   fn_errored,        MEMBER,                POLICY},
    {"error",          ".e>s",   fn_error,          MEMBER,                POLICY},
    {"allowed",        ".e>b",   fn_allowed,        MEMBER,                POLICY},
    {"reason",         ".e>s",   fn_reason,         MEMBER,                POLICY},
};
const struct dv_cel_lib dv_cel_lib_authorizer = {rows, DV_COUNT(rows)};
