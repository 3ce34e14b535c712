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

static bool may(const struct dv_kube_call *call, struct dv_auth_request wish)
{
    dv_str reason;

    wish.verb = DV_STR("impersonate");
    return dv_auth_decide(&call->user, &wish, NULL, call->arena, &reason);
}

/* Whether the user may act as the other one: name, each group, uid and each extra value need a
 * right of their own. */
static bool is_allowed(const struct dv_kube_call *call, const struct dv_api_user_info *user)
{
    struct dv_auth_request who = {.resource = DV_STR("users"), .name = user->username};
    dv_str namespace, name;

    if (split_account(user->username, &namespace, &name))
        who = (struct dv_auth_request){
            .resource = DV_STR("serviceaccounts"), .namespace = namespace, .name = name};
    if (!may(call, who))
        return false;
    for (size_t i = 0; i < user->n_groups; i++)
        if (!may(call,
                 (struct dv_auth_request){.resource = DV_STR("groups"), .name = user->groups[i]}))
            return false;
    for (size_t i = 0; i < user->n_extra; i++)
        for (size_t k = 0; k < user->extra[i].value.n; k++)
            if (!may(call, (struct dv_auth_request){.group = DV_STR(AUTHN),
                                                    .resource = DV_STR("userextras"),
                                                    .subresource = user->extra[i].key,
                                                    .name = user->extra[i].value.v[k]}))
                return false;
    return !user->uid.n ||
           may(call, (struct dv_auth_request){
                         .group = DV_STR(AUTHN), .resource = DV_STR("uids"), .name = user->uid});
}

/* Returns the right that the refusal names, which is the one that is tried first: it depends on the
 * kind of user. */
static const char *mode_of(const struct dv_api_user_info *user)
{
    bool is_plain = user->n_groups == 0 && user->n_extra == 0 && !user->uid.n;
    dv_str namespace, name;

    if (is_plain && dv_str_starts_with(user->username, DV_STR(DV_USER_NODE_PREFIX)))
        return "arbitrary-node";
    if (is_plain && split_account(user->username, &namespace, &name))
        return "serviceaccount";
    return "user-info";
}

static bool refuse(struct dv_kube_call *call, const struct dv_api_user_info *user)
{
    struct dv_auth_request wish = call->auth;

    wish.verb = dv_str_printf(call->arena, "impersonate-on:%s:%.*s", mode_of(user),
                              DV_FMT(call->auth.verb));
    dv_kube_reply_status(call, dv_kube_forbidden(call, &wish, DV_STR_NONE));
    return false;
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

bool dv_kube_impersonate(struct dv_kube_call *call)
{
    struct dv_api_user_info user = {0};

    read_fields(call->request, call->arena, &user);
    if (!user.username.n) {
        if (user.n_groups == 0 && user.n_extra == 0 && !user.uid.n)
            return true;
        dv_kube_reply_status(call, without_user(&user, call->arena));
        return false;
    }
    if (!is_allowed(call, &user))
        return refuse(call, &user);
    add_groups(&user, call->arena);
    call->user = user;
    return true;
}
