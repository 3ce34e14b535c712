/* review.c - the AdmissionReview: what a webhook is sent, and what it answers. */
#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "vap/vap.h"
#include "vap/vap_document.h"
#include "webhook/webhook.h"
#include "json/json.h"

#define GROUP "admission.k8s.io/"
/* More warnings than this of one answer, or of this many bytes, are left out: the client gets each
 * as a field of the header. */
#define WARNINGS_MAX 64u
#define WARNINGS_BYTES_MAX 4096u
/* How much of what was answered is quoted. */
#define SHOWN_BYTES_MAX 60u

static const dv_str versions[] = {
    [DV_REVIEW_V1] = DV_STR_INIT(GROUP "v1"),
    [DV_REVIEW_V1BETA1] = DV_STR_INIT(GROUP "v1beta1"),
};

/* ---- what is sent ---- */

static struct dv_json *show(const void *value, const struct dv_vap_write *write,
                            const struct dv_api_version *version, struct dv_arena *arena)
{
    if (!value)
        return dv_json_new_null(arena);
    return dv_encode_json(version->message, value, version, write->kind->name, arena);
}

void dv_review_print(const struct dv_vap_write *write, const struct dv_api_version *version,
                     enum dv_review_version review, dv_str uid, struct dv_arena *arena,
                     struct dv_buf *buf)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *request = dv_vap_request(write, version, arena);

    dv_json_set(request, DV_STR("uid"), dv_json_new_str(uid, arena), arena);
    dv_json_set(request, DV_STR("object"),
                write->other ? dv_json_copy(write->other, arena)
                             : show(write->object, write, version, arena),
                arena);
    dv_json_set(request, DV_STR("oldObject"), show(write->old, write, version, arena), arena);
    if (!write->options)
        dv_json_set(request, DV_STR("options"), dv_json_new_null(arena), arena);
    dv_json_set(doc, DV_STR("kind"), dv_json_new_str(DV_STR("AdmissionReview"), arena), arena);
    dv_json_set(doc, DV_STR("apiVersion"), dv_json_new_str(versions[review], arena), arena);
    dv_json_set(doc, DV_STR("request"), request, arena);
    dv_json_print(doc, NULL, buf);
}

/* ---- what is answered ---- */

/* Reads a text, if there is one; a null counts as none. */
static bool read_text(const struct dv_json *object, const char *key, dv_str *text,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    *text = DV_STR_NONE;
    return !node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_str(node, text, err);
}

static bool check_version(const struct dv_json *doc, enum dv_review_version review,
                          struct dv_err *err)
{
    dv_str version, kind;

    if (!read_text(doc, "apiVersion", &version, err) || !read_text(doc, "kind", &kind, err))
        return false;
    if (dv_str_eq(version, versions[review]) && dv_str_eq(kind, DV_STR("AdmissionReview")))
        return true;
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "expected webhook response of %.*s, Kind=AdmissionReview, got %.*s, Kind=%.*s",
                   DV_FMT(versions[review]),
                   DV_FMT(version.n > 0 ? dv_str_slice(version, 0, SHOWN_BYTES_MAX) : DV_STR("/")),
                   DV_FMT(dv_str_slice(kind, 0, SHOWN_BYTES_MAX)));
}

static bool read_patch(dv_str text, struct dv_arena *arena, const struct dv_json **patch,
                       struct dv_err *err)
{
    const struct dv_json *doc;
    dv_str bytes;

    if (!dv_base64_decode(text, arena, &bytes))
        return dv_fail(err, DV_INVALID_ARGUMENT, "response.patch is not base64");
    if (bytes.n == 0)
        return true;
    doc = dv_json_parse(bytes, NULL, arena, err);
    if (!doc)
        return dv_wrap(err, "received undecodable patch in webhook response");
    if (!dv_json_is(doc, DV_JSON_ARRAY) && !dv_json_is(doc, DV_JSON_NULL))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "received undecodable patch in webhook response: want a list of "
                       "operations, got %s",
                       dv_json_kind_name(dv_json_kind(doc)));
    *patch = dv_json_n(doc) > 0 ? doc : NULL;
    return true;
}

/* Checks that what is there of a patch and its type is what the phase may answer. */
static bool check_patch(enum dv_webhook_phase phase, dv_str patch, dv_str type, struct dv_err *err)
{
    if (phase == DV_WEBHOOK_VALIDATES && patch.n > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "validating webhook may not return response.patch");
    if (phase == DV_WEBHOOK_VALIDATES && type.p)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "validating webhook may not return response.patchType");
    if (patch.n > 0 && !type.p)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "webhook returned response.patch but not response.patchType");
    if (patch.n == 0 && type.p)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "webhook returned response.patchType but not response.patch");
    if (type.p && !dv_str_eq(type, DV_STR("JSONPatch")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "webhook returned invalid response.patchType of \"%.*s\"",
                       DV_FMT(dv_str_slice(type, 0, SHOWN_BYTES_MAX)));
    return true;
}

/* Older reviews were never checked: a patch counts whatever it is called, and only where one may
 * be. */
static bool take_patch(const struct dv_json *response, enum dv_review_version review,
                       enum dv_webhook_phase phase, struct dv_arena *arena,
                       struct dv_webhook_answer *answer, struct dv_err *err)
{
    dv_str patch, type;

    if (!read_text(response, "patch", &patch, err) || !read_text(response, "patchType", &type, err))
        return false;
    if (review == DV_REVIEW_V1 && !check_patch(phase, patch, type, err))
        return false;
    return phase == DV_WEBHOOK_VALIDATES || patch.n == 0 ||
           read_patch(patch, arena, &answer->patch, err);
}

static bool take_warnings(const struct dv_json *response, struct dv_arena *arena,
                          struct dv_webhook_answer *answer, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(response, DV_STR("warnings"));
    DV_VEC(dv_str) warnings = {0};
    size_t n_bytes = 0;

    if (!list || dv_json_is(list, DV_JSON_NULL))
        return true;
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        dv_str text;

        if (!dv_json_as_str(item, &text, err))
            return false;
        if (warnings.n == WARNINGS_MAX || text.n > WARNINGS_BYTES_MAX - n_bytes)
            continue;
        n_bytes += text.n;
        *dv_vec_add_in(&warnings, arena) = text;
    }
    answer->warnings = warnings.v;
    answer->n_warnings = warnings.n;
    return true;
}

static bool take_status(const struct dv_json *response, struct dv_arena *arena,
                        struct dv_webhook_answer *answer, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(response, DV_STR("status"));
    struct dv_api_status *status;

    if (!node || dv_json_is(node, DV_JSON_NULL))
        return true;
    status = DV_NEW(arena, struct dv_api_status);
    if (!dv_decode_json(&dv_message_status, node, DV_UNKNOWN_DROP, arena, status, NULL, err))
        return dv_wrap(err, "response.status");
    answer->status = status;
    return true;
}

static bool take_allowed(const struct dv_json *response, struct dv_webhook_answer *answer,
                         struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(response, DV_STR("allowed"));

    return !node || dv_json_is(node, DV_JSON_NULL) ||
           dv_json_as_bool(node, &answer->is_allowed, err);
}

static bool read_response(const struct dv_json *doc, enum dv_review_version review, dv_str uid,
                          enum dv_webhook_phase phase, struct dv_arena *arena,
                          struct dv_webhook_answer *answer, struct dv_err *err)
{
    const struct dv_json *response = dv_json_get(doc, DV_STR("response"));
    dv_str got;

    if (!response || dv_json_is(response, DV_JSON_NULL))
        return dv_fail(err, DV_INVALID_ARGUMENT, "webhook response was absent");
    if (!dv_json_expect(response, DV_JSON_OBJECT, err) || !read_text(response, "uid", &got, err))
        return false;
    if (review == DV_REVIEW_V1 && !dv_str_eq(got, uid))
        return dv_fail(err, DV_INVALID_ARGUMENT, "expected response.uid=\"%.*s\", got \"%.*s\"",
                       DV_FMT(uid), DV_FMT(dv_str_slice(got, 0, SHOWN_BYTES_MAX)));
    if (review == DV_REVIEW_V1 && !check_version(doc, review, err))
        return false;
    return take_allowed(response, answer, err) &&
           take_patch(response, review, phase, arena, answer, err) &&
           take_warnings(response, arena, answer, err) && take_status(response, arena, answer, err);
}

bool dv_review_read(dv_str text, enum dv_review_version review, dv_str uid,
                    enum dv_webhook_phase phase, struct dv_arena *arena,
                    struct dv_webhook_answer *answer, struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(text, NULL, arena, err);
    struct dv_webhook_answer read = {0};

    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err) ||
        !read_response(doc, review, uid, phase, arena, &read, err)) {
        err->code = DV_INVALID_ARGUMENT;
        return dv_wrap(err, "received invalid webhook response");
    }
    *answer = read;
    return true;
}

/* ---- refusals ---- */

struct dv_api_status *dv_review_refusal(dv_str name, const struct dv_api_status *said,
                                        struct dv_arena *arena)
{
    static const struct dv_api_status nothing;
    struct dv_api_status *status = DV_NEW(arena, struct dv_api_status);
    dv_str why;

    dv_message_copy(&dv_message_status, said ? said : &nothing, arena, status);
    why = status->message.n > 0 ? status->message : status->reason;
    if (status->code < 400 || status->code > 599)
        status->code = 400;
    status->status = DV_STR("Failure");
    status->message =
        why.n > 0 ? dv_str_printf(arena, "admission webhook \"%.*s\" denied the request: %.*s",
                                  DV_FMT(name), DV_FMT(why))
                  : dv_str_printf(arena,
                                  "admission webhook \"%.*s\" denied the request without "
                                  "explanation",
                                  DV_FMT(name));
    return status;
}
