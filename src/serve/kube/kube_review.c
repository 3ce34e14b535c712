/* kube_review.c - answers reviews: SelfSubjectReview (who am I), SubjectAccessReview and its
 * siblings (may they), TokenReview (is this a token). */
#include "base/arena.h"
#include "base/buf.h"
#include "base/visible.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/scale.h"
#include "resource/status.h"
#include "rest/rest.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"
#include "serve/wire/kube_body.h"

#define TEXT_BYTES_MAX (4u << 20)
#define AUTHN "authentication.k8s.io"
#define AUTHZ "authorization.k8s.io"

bool dv_kube_read_review(struct dv_kube_call *call, const struct dv_body_kind *kind, void **value)
{
    struct dv_decode_notes notes;
    struct dv_api_status *failure;
    struct dv_write_options options;
    enum dv_media media;

    if (!dv_kube_body_media(call, &media))
        return false;
    if (!dv_query_write_options(&call->query, "CreateOptions", false, DV_STR_NONE, call->arena,
                                &options, &failure) ||
        !dv_body_decode(call->request->body, media, kind, options.validation, call->arena, value,
                        &notes, &failure)) {
        dv_kube_reply_status(call, failure);
        return false;
    }
    for (size_t i = 0; i < notes.n; i++)
        dv_kube_warn(call, notes.v[i]);
    return true;
}

void dv_kube_reply_review(struct dv_kube_call *call, const struct dv_body_kind *kind,
                          const void *value)
{
    struct dv_buf body;
    dv_str api_version =
        dv_str_printf(call->arena, "%.*s/%.*s", DV_FMT(kind->group), DV_FMT(kind->version));

    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_render_message(call->render.rendering.media, kind->message, value, api_version, kind->kind,
                      &body);
    dv_kube_reply(call, 201, &body);
    dv_buf_fini(&body);
}

const struct dv_body_kind dv_kube_scale_kind = {DV_STR_INIT("Scale"), DV_STR_INIT("autoscaling"),
                                                DV_STR_INIT("v1"), &dv_message_scale};

void dv_kube_reply_scale(struct dv_kube_call *call, struct dv_object *object)
{
    struct dv_api_scale scale;
    struct dv_buf body;
    dv_str missing;

    if (!dv_kind_is_custom(call->route.kind)) {
        dv_scale_of(object, call->arena, &scale);
    } else if (!dv_scale_of_custom(object, dv_custom_version_of(call->route.api_version),
                                   call->arena, &scale, &missing)) {
        dv_kube_reply_status(call, dv_status_new(500, DV_STR_NONE, call->arena,
                                                 "the spec replicas field \"%.*s\" does not exist",
                                                 DV_FMT(missing)));
        return;
    }
    dv_buf_init(&body, TEXT_BYTES_MAX);
    dv_render_message(call->render.rendering.media, &dv_message_scale, &scale,
                      DV_STR("autoscaling/v1"), DV_STR("Scale"), &body);
    dv_kube_reply(call, 200, &body);
    dv_buf_fini(&body);
}

/* ---- who ---- */

static void review_self(struct dv_kube_call *call)
{
    const struct dv_body_kind kind = {DV_STR("SelfSubjectReview"), DV_STR(AUTHN), DV_STR("v1"),
                                      &dv_message_self_subject_review};
    struct dv_api_self_subject_review *review;
    void *value;

    if (!dv_kube_read_review(call, &kind, &value))
        return;
    review = value;
    review->metadata.creation_timestamp = dv_kube_now(call->kube);
    review->status.user_info = call->user;
    dv_kube_reply_review(call, &kind, review);
}

static void print_list(struct dv_strs texts, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < texts.n; i++) {
        dv_buf_add_c(buf, i > 0 ? " " : "");
        dv_go_quote(texts.v[i], buf);
    }
    dv_buf_add_char(buf, ']');
}

/* Says why a token is refused, as the reference does. */
static dv_str refusal(const struct dv_kube *kube, const struct dv_api_token_review_spec *spec,
                      const struct dv_token *token, struct dv_arena *arena)
{
    struct dv_strs asked = {spec->audiences, spec->n_audiences};
    dv_str why = DV_STR("service account token has been invalidated");
    struct dv_buf buf;

    if (!token) {
        why = dv_tokens_why_not(kube->options.tokens, spec->token, arena);
    } else if (token->claims && dv_kube_is_token_bound_there(kube, token)) {
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_buf_add_c(&buf, "token audiences ");
        print_list(token->audiences, &buf);
        dv_buf_add_c(&buf, " is invalid for the target audiences ");
        print_list(asked.n > 0 ? asked : dv_kube_audiences(kube), &buf);
        why = dv_str_copy(dv_buf_str(&buf), arena);
        dv_buf_fini(&buf);
    } else if (!token->claims) {
        why = DV_STR_NONE;
    }
    return why.n ? dv_str_printf(arena, "[invalid bearer token, %.*s]", DV_FMT(why))
                 : DV_STR("invalid bearer token");
}

static void decide_token(const struct dv_kube *kube, const struct dv_api_token_review_spec *spec,
                         struct dv_arena *arena, struct dv_api_token_review_status *status)
{
    static const struct dv_token of_this_api = {0}; /* it has no audiences */
    const struct dv_token *token = dv_tokens_find(kube->options.tokens, spec->token);
    struct dv_strs asked = {spec->audiences, spec->n_audiences};
    struct dv_api_user_info peer = {0};
    bool is_peer = !token && dv_kube_is_peer_token(kube, spec->token, arena, &peer);
    struct dv_strs audiences = {0};

    *status = (struct dv_api_token_review_status){0};
    if (is_peer)
        audiences = dv_kube_shared_audiences(kube, &of_this_api, asked, arena);
    else if (token && dv_kube_is_token_bound_there(kube, token))
        audiences = dv_kube_shared_audiences(kube, token, asked, arena);
    if (audiences.n == 0) {
        status->error = refusal(kube, spec, token, arena);
        return;
    }
    status->authenticated = true;
    status->audiences = audiences.v;
    status->n_audiences = audiences.n;
    status->user = is_peer ? peer : token->user;
}

static void review_token(struct dv_kube_call *call)
{
    const struct dv_body_kind kind = {DV_STR("TokenReview"), DV_STR(AUTHN), DV_STR("v1"),
                                      &dv_message_token_review};
    struct dv_api_token_review *review;
    void *value;

    if (!dv_kube_read_review(call, &kind, &value))
        return;
    review = value;
    if (!review->spec.token.n) {
        dv_kube_reply_status(call,
                             dv_status_bad_request(call->arena, "token is required for TokenReview "
                                                                "in authentication"));
        return;
    }
    review->metadata.namespace = DV_STR_NONE; /* as of everything that is in no namespace */
    decide_token(call->kube, &review->spec, call->arena, &review->status);
    dv_kube_reply_review(call, &kind, review);
}

/* ---- whether ---- */

/* Returns the selector of a review as the text that requests send. */
static dv_str selector_of(const struct dv_api_field_selector_attributes *attributes,
                          struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    if (!attributes)
        return DV_STR_NONE;
    if (attributes->raw_selector.n)
        return attributes->raw_selector;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < attributes->n_requirements; i++) {
        const struct dv_api_field_selector_requirement *one = &attributes->requirements[i];

        if (dv_str_eq(one->operator, DV_STR("In")) && one->n_values == 1)
            dv_buf_printf(&buf, "%s%.*s=%.*s", buf.n ? "," : "", DV_FMT(one->key),
                          DV_FMT(one->values[0]));
    }
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static struct dv_auth_request auth_request_of(const struct dv_api_resource_attributes *resource,
                                              const struct dv_api_non_resource_attributes *path,
                                              struct dv_arena *arena)
{
    struct dv_auth_request asked = {0};

    if (path) {
        asked.verb = path->verb;
        asked.path = path->path.n ? path->path : DV_STR("/");
    }
    if (resource) {
        asked.verb = resource->verb;
        asked.path = DV_STR_NONE;
        asked.group = resource->group;
        asked.resource = resource->resource;
        asked.subresource = resource->subresource;
        asked.namespace = resource->namespace;
        asked.name = resource->name;
        asked.field_selector = selector_of(resource->field_selector, arena);
    }
    return asked;
}

static void decide(struct dv_kube *kube, const struct dv_api_user_info *user,
                   const struct dv_auth_request *asked, struct dv_arena *arena,
                   struct dv_api_subject_access_review_status *status)
{
    struct dv_auth_relations relations = dv_kube_relations(kube);

    *status = (struct dv_api_subject_access_review_status){0};
    status->allowed = dv_auth_decide(user, asked, &relations, arena, &status->reason);
    if (status->allowed)
        status->reason = dv_auth_allowed_by(user, asked, &relations, arena);
}

/* Reads what a review asks for: a resource or a path. False: it has neither or both, and the call
 * has been answered. */
static bool read_auth_request(struct dv_kube_call *call,
                              const struct dv_api_resource_attributes *resource,
                              const struct dv_api_non_resource_attributes *path,
                              struct dv_auth_request *asked)
{
    if (!resource != !path) {
        *asked = auth_request_of(resource, path, call->arena);
        return true;
    }
    dv_kube_reply_status(call, dv_status_bad_request(call->arena,
                                                     "exactly one of nonResourceAttributes or "
                                                     "resourceAttributes must be specified"));
    return false;
}

static void review_self_access(struct dv_kube_call *call)
{
    const struct dv_body_kind kind = {DV_STR("SelfSubjectAccessReview"), DV_STR(AUTHZ),
                                      DV_STR("v1"), &dv_message_self_subject_access_review};
    struct dv_api_self_subject_access_review *review;
    struct dv_auth_request asked;
    void *value;

    if (!dv_kube_read_review(call, &kind, &value))
        return;
    review = value;
    if (!read_auth_request(call, review->spec.resource_attributes,
                           review->spec.non_resource_attributes, &asked))
        return;
    decide(call->kube, &call->user, &asked, call->arena, &review->status);
    dv_kube_reply_review(call, &kind, review);
}

/* Returns the user that a review is about. */
static struct dv_api_user_info subject_of(const struct dv_api_subject_access_review_spec *spec)
{
    return (struct dv_api_user_info){
        .username = spec->user,
        .uid = spec->uid,
        .groups = spec->groups,
        .n_groups = spec->n_groups,
        .extra = spec->extra,
        .n_extra = spec->n_extra,
    };
}

void dv_kube_review_own(void *ctx, struct dv_user_review *review, struct dv_arena *arena)
{
    struct dv_kube *kube = ctx;

    if (review->token) {
        struct dv_api_token_review_status *status =
            DV_NEW(arena, struct dv_api_token_review_status);

        struct dv_api_user_info user;

        decide_token(kube, review->token, arena, status);
        /* The token may be revoked before the answer is looked at. */
        user = status->user;
        dv_message_copy(&dv_message_user_info, &user, arena, &status->user);
        review->token_status = status;
    } else {
        struct dv_api_subject_access_review_status *status =
            DV_NEW(arena, struct dv_api_subject_access_review_status);
        struct dv_api_user_info user = subject_of(review->access);
        struct dv_auth_request asked = auth_request_of(
            review->access->resource_attributes, review->access->non_resource_attributes, arena);

        decide(kube, &user, &asked, arena, status);
        review->access_status = status;
    }
}

/* A local review is about its own namespace: who may make one there may not ask about others. */
static bool is_local(struct dv_kube_call *call, const struct dv_auth_request *asked)
{
    if (call->route.review != DV_REVIEW_LOCAL_ACCESS ||
        (!asked->path.n && dv_str_eq(asked->namespace, call->route.namespace)))
        return true;
    dv_kube_reply_status(
        call, dv_status_bad_request(call->arena,
                                    "spec.resourceAttributes.namespace must match namespace: %.*s",
                                    DV_FMT(call->route.namespace)));
    return false;
}

static void review_access(struct dv_kube_call *call, dv_str name)
{
    const struct dv_body_kind kind = {name, DV_STR(AUTHZ), DV_STR("v1"),
                                      &dv_message_subject_access_review};
    struct dv_api_subject_access_review *review;
    struct dv_api_user_info user;
    struct dv_auth_request asked;
    void *value;

    if (!dv_kube_read_review(call, &kind, &value))
        return;
    review = value;
    user = subject_of(&review->spec);
    if (!read_auth_request(call, review->spec.resource_attributes,
                           review->spec.non_resource_attributes, &asked) ||
        !is_local(call, &asked))
        return;
    decide(call->kube, &user, &asked, call->arena, &review->status);
    dv_kube_reply_review(call, &kind, review);
}

void dv_kube_review(struct dv_kube_call *call)
{
    switch (call->route.review) {
    case DV_REVIEW_NONE:
        dv_kube_reply_status(call, dv_status_no_such_path(call->arena));
        break;
    case DV_REVIEW_BINDING:
        dv_kube_bind(call);
        break;
    case DV_REVIEW_TOKEN:
        review_token(call);
        break;
    case DV_REVIEW_SELF:
        review_self(call);
        break;
    case DV_REVIEW_ACCESS:
        review_access(call, DV_STR("SubjectAccessReview"));
        break;
    case DV_REVIEW_LOCAL_ACCESS:
        review_access(call, DV_STR("LocalSubjectAccessReview"));
        break;
    case DV_REVIEW_SELF_ACCESS:
        review_self_access(call);
        break;
    case DV_REVIEW_SELF_RULES:
        dv_kube_review_rules(call);
        break;
    case DV_REVIEW_TOKEN_REQUEST:
        dv_kube_request_token(call);
        break;
    }
}
