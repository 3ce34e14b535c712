/* kube_impersonate.c - acting as another: the user that a request's headers name.
 *
 *     Impersonate-User, Impersonate-Group (several), Impersonate-Uid, Impersonate-Extra-KEY
 *
 * Whatever is asked for is either all granted or the request is refused; a header that is not
 * understood never leaves the request with the rights of who sent it. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/name.h"
#include "base/num.h"
#include "base/str.h"
#include "base/visible.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"

#define TEXT_BYTES_MAX (1u << 20)
#define EXTRA_PREFIX "Impersonate-Extra-"
#define ACCOUNT_PREFIX "system:serviceaccount:"
#define AUTHN "authentication.k8s.io"

static bool is_field(const struct dv_rest_field *field, const char *name)
{
    return dv_str_eq_nocase(field->name, dv_str_from_c(name));
}

/* ---- what the headers say ---- */

/* Returns the key in lower case and then percent-decoded; one that cannot be decoded stays as it
 * is. */
static dv_str extra_key(dv_str raw, struct dv_arena *arena)
{
    char *lower = dv_arena_alloc(arena, raw.n + 1, 1);
    char *text = dv_arena_alloc(arena, raw.n + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++)
        lower[i] = dv_to_lower(raw.p[i]);
    for (size_t i = 0; i < raw.n; i++) {
        int byte;

        if (lower[i] != '%') {
            text[n++] = lower[i];
            continue;
        }
        byte = dv_percent_byte((dv_str){lower, raw.n}, i);
        if (byte < 0)
            return (dv_str){lower, raw.n};
        text[n++] = (char)byte;
        i += 2;
    }
    return (dv_str){text, n};
}

static struct dv_strs_entry *extra_entry(struct dv_api_user_info *user, dv_str key)
{
    for (size_t i = 0; i < user->n_extra; i++)
        if (dv_str_eq(user->extra[i].key, key))
            return &user->extra[i];
    user->extra[user->n_extra] = (struct dv_strs_entry){.key = key};
    return &user->extra[user->n_extra++];
}

static int cmp_entries(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_strs_entry *)a)->key,
                      ((const struct dv_strs_entry *)b)->key);
}

/* Reads the user that the headers ask for. Each list gets room for as many entries as the header
 * has fields, since there cannot be more. */
static void read_fields(const struct dv_rest_request *request, struct dv_arena *arena,
                        struct dv_api_user_info *user)
{
    const dv_str prefix = DV_STR(EXTRA_PREFIX);
    size_t n = request->n_fields;

    user->username = dv_rest_request_field(request, DV_STR("Impersonate-User"));
    user->uid = dv_rest_request_field(request, DV_STR("Impersonate-Uid"));
    user->groups = DV_NEW_ARRAY(arena, dv_str, n + 3);
    user->extra = DV_NEW_ARRAY(arena, struct dv_strs_entry, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct dv_rest_field *field = &request->fields[i];

        if (is_field(field, "Impersonate-Group")) {
            user->groups[user->n_groups++] = field->value;
        } else if (dv_str_eq_nocase(dv_str_slice(field->name, 0, prefix.n), prefix)) {
            struct dv_strs_entry *entry = extra_entry(
                user, extra_key(dv_str_slice(field->name, prefix.n, field->name.n), arena));

            if (!entry->value.v)
                entry->value.v = DV_NEW_ARRAY(arena, dv_str, n);
            entry->value.v[entry->value.n++] = field->value;
        }
    }
    if (user->n_extra > 0)
        qsort(user->extra, user->n_extra, sizeof(user->extra[0]), cmp_entries);
}

static void print_texts(const dv_str *texts, size_t n, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "[]string");
    if (n == 0) {
        dv_buf_add_c(buf, "(nil)");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i ? ", " : "{");
        dv_go_quote(texts[i], buf);
    }
    dv_buf_add_c(buf, "}");
}

/* Refuses a request that names groups, a uid or extra values but no user. The text is the
 * reference's, which prints its own struct. */
static struct dv_api_status *without_user(const struct dv_api_user_info *user,
                                          struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "&user.DefaultInfo{Name:\"\", UID:");
    dv_go_quote(user->uid, &buf);
    dv_buf_add_c(&buf, ", Groups:");
    print_texts(user->groups, user->n_groups, &buf);
    dv_buf_add_c(&buf, ", Extra:map[string][]string");
    if (user->n_extra == 0)
        dv_buf_add_c(&buf, "(nil)");
    for (size_t i = 0; i < user->n_extra; i++) {
        dv_buf_add_c(&buf, i ? ", " : "{");
        dv_go_quote(user->extra[i].key, &buf);
        dv_buf_add_c(&buf, ":");
        print_texts(user->extra[i].value.v, user->extra[i].value.n, &buf);
    }
    dv_buf_add_c(&buf, user->n_extra ? "}}" : "}");
    return dv_status_bad_request(arena, "requested %.*s without impersonating a user name",
                                 DV_FMT(dv_buf_str(&buf)));
}

/* ---- whether it is allowed ---- */

/* "system:serviceaccount:NS:NAME" */
static bool split_account(dv_str user, dv_str *namespace, dv_str *name)
{
    const dv_str prefix = DV_STR(ACCOUNT_PREFIX);
    size_t colon;

    if (!dv_str_starts_with(user, prefix))
        return false;
    user = dv_str_slice(user, prefix.n, user.n);
    colon = dv_str_find_char(user, ':');
    *namespace = dv_str_slice(user, 0, colon);
    *name = colon < user.n ? dv_str_slice(user, colon + 1, user.n) : DV_STR_NONE;
    return dv_is_dns_label(*namespace) && dv_is_dns_subdomain(*name);
}

static bool is_granted(const struct dv_kube_call *call, const struct dv_auth_request *asked)
{
    struct dv_auth_relations relations = dv_kube_relations(call->kube);
    dv_str reason;

    return dv_auth_decide(&call->user, asked, &relations, call->arena, &reason);
}

/* Whether the user may impersonate that; if not, *missing is what it lacks. */
static bool may(const struct dv_kube_call *call, struct dv_auth_request asked,
                struct dv_auth_request *missing)
{
    asked.verb = DV_STR("impersonate");
    if (is_granted(call, &asked))
        return true;
    *missing = asked;
    return false;
}

static bool may_be(const struct dv_kube_call *call, const struct dv_api_user_info *user,
                   struct dv_auth_request *missing)
{
    struct dv_auth_request who = {.resource = DV_STR("users"), .name = user->username};
    dv_str namespace, name;

    if (split_account(user->username, &namespace, &name))
        who = (struct dv_auth_request){
            .resource = DV_STR("serviceaccounts"), .namespace = namespace, .name = name};
    return may(call, who, missing);
}

/* Whether the user may act as the other one in everything: besides the name each group, each extra
 * value and the uid need a right of their own. */
static bool may_have(const struct dv_kube_call *call, const struct dv_api_user_info *user,
                     struct dv_auth_request *missing)
{
    const struct dv_auth_request uid = {
        .group = DV_STR(AUTHN), .resource = DV_STR("uids"), .name = user->uid};

    for (size_t i = 0; i < user->n_groups; i++)
        if (!may(call,
                 (struct dv_auth_request){.resource = DV_STR("groups"), .name = user->groups[i]},
                 missing))
            return false;
    for (size_t i = 0; i < user->n_extra; i++)
        for (size_t k = 0; k < user->extra[i].value.n; k++)
            if (!may(call,
                     (struct dv_auth_request){.group = DV_STR(AUTHN),
                                              .resource = DV_STR("userextras"),
                                              .subresource = user->extra[i].key,
                                              .name = user->extra[i].value.v[k]},
                     missing))
                return false;
    return !user->uid.n || may(call, uid, missing);
}

/* ---- whether it is allowed for this request ----
 *
 * Rights can be given for some requests only: in a mode, which depends on the kind of user, one
 * verb says as whom (impersonate:MODE) and another one for what (impersonate-on:MODE:VERB). */

enum mode {
    MODE_ASSOCIATED_NODE, /* the node that the requester's own pod is on */
    MODE_ARBITRARY_NODE,
    MODE_ACCOUNT,
    MODE_USER,
};

static const char *const mode_names[] = {
    [MODE_ASSOCIATED_NODE] = "associated-node",
    [MODE_ARBITRARY_NODE] = "arbitrary-node",
    [MODE_ACCOUNT] = "serviceaccount",
    [MODE_USER] = "user-info",
};

static bool is_on_node(const struct dv_api_user_info *requester, dv_str node)
{
    struct dv_strs nodes = dv_auth_extra(requester, DV_STR(DV_EXTRA_NODE));

    return dv_str_starts_with(requester->username, DV_STR(ACCOUNT_PREFIX)) && nodes.n == 1 &&
           dv_str_eq(nodes.v[0], node);
}

/* Returns the mode that is tried first. */
static enum mode mode_of(const struct dv_kube_call *call, const struct dv_api_user_info *user)
{
    const dv_str prefix = DV_STR(DV_USER_NODE_PREFIX);
    bool is_plain = user->n_groups == 0 && user->n_extra == 0 && !user->uid.n;
    dv_str namespace, name;

    if (is_plain && dv_str_starts_with(user->username, prefix))
        return is_on_node(&call->user, dv_str_slice(user->username, prefix.n, user->username.n))
                   ? MODE_ASSOCIATED_NODE
                   : MODE_ARBITRARY_NODE;
    if (is_plain && split_account(user->username, &namespace, &name))
        return MODE_ACCOUNT;
    return MODE_USER;
}

static bool may_as(const struct dv_kube_call *call, enum mode mode, struct dv_auth_request asked)
{
    asked.group = DV_STR(AUTHN);
    asked.verb = dv_str_printf(call->arena, "impersonate:%s", mode_names[mode]);
    return is_granted(call, &asked);
}

static bool may_as_user(const struct dv_kube_call *call, const struct dv_api_user_info *user)
{
    dv_str namespace, name;

    if (split_account(user->username, &namespace, &name) ||
        dv_str_starts_with(user->username, DV_STR(DV_USER_NODE_PREFIX)) ||
        !may_as(call, MODE_USER,
                (struct dv_auth_request){.resource = DV_STR("users"), .name = user->username}))
        return false;
    for (size_t i = 0; i < user->n_groups; i++)
        if (!user->groups[i].n || dv_str_eq(user->groups[i], DV_STR(DV_GROUP_ADMINS)) ||
            !may_as(
                call, MODE_USER,
                (struct dv_auth_request){.resource = DV_STR("groups"), .name = user->groups[i]}))
            return false;
    for (size_t i = 0; i < user->n_extra; i++)
        for (size_t k = 0; k < user->extra[i].value.n; k++)
            if (!may_as(call, MODE_USER,
                        (struct dv_auth_request){.resource = DV_STR("userextras"),
                                                 .subresource = user->extra[i].key,
                                                 .name = user->extra[i].value.v[k]}))
                return false;
    return !user->uid.n ||
           may_as(call, MODE_USER,
                  (struct dv_auth_request){.resource = DV_STR("uids"), .name = user->uid});
}

static bool may_as_node(const struct dv_kube_call *call, enum mode mode, dv_str node)
{
    return may_as(
        call, mode,
        (struct dv_auth_request){.resource = DV_STR("nodes"),
                                 .name = mode == MODE_ASSOCIATED_NODE ? DV_STR("*") : node});
}

static struct dv_auth_request target_of(const struct dv_kube_call *call, enum mode mode)
{
    struct dv_auth_request asked = call->auth;

    asked.verb = dv_str_printf(call->arena, "impersonate-on:%s:%.*s", mode_names[mode],
                               DV_FMT(call->auth.verb));
    return asked;
}

static bool is_allowed_in(const struct dv_kube_call *call, const struct dv_api_user_info *user,
                          enum mode mode)
{
    const dv_str prefix = DV_STR(DV_USER_NODE_PREFIX);
    struct dv_auth_request target = target_of(call, mode);
    dv_str namespace, name;

    if (!is_granted(call, &target))
        return false;
    switch (mode) {
    case MODE_ASSOCIATED_NODE:
    case MODE_ARBITRARY_NODE:
        return may_as_node(call, mode, dv_str_slice(user->username, prefix.n, user->username.n));
    case MODE_ACCOUNT:
        return split_account(user->username, &namespace, &name) &&
               may_as(call, mode,
                      (struct dv_auth_request){.resource = DV_STR("serviceaccounts"),
                                               .namespace = namespace,
                                               .name = name});
    case MODE_USER:
        return may_as_user(call, user);
    }
    return false;
}

/* Whether one of the modes allows it. *is_node: as a node, which then is in that group alone. */
static bool is_allowed_for_this(const struct dv_kube_call *call,
                                const struct dv_api_user_info *user, bool *is_node)
{
    enum mode mode = mode_of(call, user);

    *is_node = mode == MODE_ASSOCIATED_NODE || mode == MODE_ARBITRARY_NODE;
    return is_allowed_in(call, user, mode) ||
           (mode == MODE_ASSOCIATED_NODE && is_allowed_in(call, user, MODE_ARBITRARY_NODE));
}

/* ---- who it is then ---- */

static void add_groups(struct dv_api_user_info *user, struct dv_arena *arena)
{
    bool is_anonymous = dv_str_eq(user->username, DV_STR(DV_USER_ANONYMOUS));
    dv_str namespace, name;

    if (user->n_groups == 0 && split_account(user->username, &namespace, &name)) {
        user->groups[user->n_groups++] = DV_STR("system:serviceaccounts");
        user->groups[user->n_groups++] =
            dv_str_printf(arena, "system:serviceaccounts:%.*s", DV_FMT(namespace));
    }
    if (dv_auth_is_in(user, DV_STR(DV_GROUP_UNAUTHENTICATED)))
        return;
    if (is_anonymous)
        user->groups[user->n_groups++] = DV_STR(DV_GROUP_UNAUTHENTICATED);
    else if (!dv_auth_is_in(user, DV_STR(DV_GROUP_AUTHENTICATED)))
        user->groups[user->n_groups++] = DV_STR(DV_GROUP_AUTHENTICATED);
}

/* Whether it is allowed; if not, *missing is a right that would help: for who may act as that user
 * but not have all of this, what it lacks; else what the mode needs that is tried first. */
static bool is_allowed(const struct dv_kube_call *call, const struct dv_api_user_info *user,
                       bool *is_node, struct dv_auth_request *missing)
{
    bool may_be_user = may_be(call, user, missing);

    *is_node = false;
    if ((may_be_user && may_have(call, user, missing)) || is_allowed_for_this(call, user, is_node))
        return true;
    if (!may_be_user)
        *missing = target_of(call, mode_of(call, user));
    return false;
}

bool dv_kube_impersonate(struct dv_kube_call *call)
{
    struct dv_api_user_info user = {0};
    struct dv_auth_request missing;
    bool is_node;

    read_fields(call->request, call->arena, &user);
    if (!user.username.p || user.username.n == 0) {
        if (user.n_groups == 0 && user.n_extra == 0 && !user.uid.n)
            return true;
        dv_kube_reply_status(call, without_user(&user, call->arena));
        return false;
    }
    if (!is_allowed(call, &user, &is_node, &missing)) {
        dv_kube_reply_status(call, dv_kube_forbidden(call, &missing, DV_STR_NONE));
        return false;
    }
    if (is_node)
        user.groups[user.n_groups++] = DV_STR(DV_GROUP_NODES);
    add_groups(&user, call->arena);
    call->user = user;
    return true;
}
