/* status.c - failures as the API tells them: Status objects with the reference's codes, reasons and
 * messages, made for each kind of failure. */
#include "resource/status.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "resource/validate.h"

/* A message may list every problem of an object of 3 MiB. */
#define MESSAGE_BYTES_MAX (8u * 1024u * 1024u)

static dv_str vprint(struct dv_arena *arena, const char *fmt, va_list args) DV_PRINTF(2, 0);

static dv_str vprint(struct dv_arena *arena, const char *fmt, va_list args)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_buf_vprintf(&buf, fmt, args);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static struct dv_api_status *make(int code, dv_str reason, dv_str message, struct dv_arena *arena)
{
    struct dv_api_status *status = DV_NEW(arena, struct dv_api_status);

    status->status = DV_STR("Failure");
    status->code = code;
    status->reason = reason;
    status->message = message;
    return status;
}

static dv_str group_of(const struct dv_status_about *about)
{
    return about->kind ? about->kind->versions[0].group : about->group;
}

static void add_details(struct dv_api_status *status, const struct dv_status_about *about,
                        dv_str what, struct dv_arena *arena)
{
    struct dv_api_status_details *details = DV_NEW(arena, struct dv_api_status_details);

    details->name = dv_str_copy(about->name, arena);
    details->uid = dv_str_copy(about->uid, arena);
    details->kind = dv_str_copy(what, arena);
    details->group = dv_str_copy(group_of(about), arena);
    status->details = details;
}

static dv_str what_of(const struct dv_status_about *about)
{
    if (about->what.n > 0 || !about->kind)
        return about->what;
    return about->kind->plural;
}

/* "resourceclaims.resource.k8s.io", "pods" */
static dv_str qualify(dv_str what, const struct dv_status_about *about, struct dv_arena *arena)
{
    dv_str group = group_of(about);

    if (group.n == 0)
        return what;
    return dv_str_printf(arena, "%.*s.%.*s", DV_FMT(what), DV_FMT(group));
}

/* The words that most failures begin with: `resourceclaims.resource.k8s.io "NAME"`. */
static dv_str subject(const struct dv_status_about *about, struct dv_arena *arena)
{
    dv_str what = qualify(what_of(about), about, arena);

    return dv_str_printf(arena, "%.*s \"%.*s\"", DV_FMT(what), DV_FMT(about->name));
}

struct dv_api_status *dv_status_new(int code, dv_str reason, struct dv_arena *arena,
                                    const char *fmt, ...)
{
    va_list args;
    dv_str message;

    va_start(args, fmt);
    message = vprint(arena, fmt, args);
    va_end(args);
    return make(code, dv_str_copy(reason, arena), message, arena);
}

struct dv_api_status *dv_status_bad_request(struct dv_arena *arena, const char *fmt, ...)
{
    va_list args;
    dv_str message;

    va_start(args, fmt);
    message = vprint(arena, fmt, args);
    va_end(args);
    return make(400, DV_STR("BadRequest"), message, arena);
}

struct dv_api_status *dv_status_unauthorized(struct dv_arena *arena)
{
    return make(401, DV_STR("Unauthorized"), DV_STR("Unauthorized"), arena);
}

struct dv_api_status *dv_status_forbidden(const struct dv_status_about *about,
                                          struct dv_arena *arena, const char *fmt, ...)
{
    struct dv_api_status *status;
    dv_str who;
    dv_str why;
    va_list args;

    va_start(args, fmt);
    why = vprint(arena, fmt, args);
    va_end(args);
    /* Without a name the reference leaves the empty quotes out. */
    who = about->name.n > 0 ? subject(about, arena) : qualify(what_of(about), about, arena);
    status = make(403, DV_STR("Forbidden"),
                  dv_str_printf(arena, "%.*s%sforbidden: %.*s", DV_FMT(who),
                                who.n > 0 ? " is " : "", DV_FMT(why)),
                  arena);
    add_details(status, about, what_of(about), arena);
    return status;
}

struct dv_api_status *dv_status_not_found(const struct dv_status_about *about,
                                          struct dv_arena *arena)
{
    dv_str who = subject(about, arena);
    struct dv_api_status *status =
        make(404, DV_STR("NotFound"), dv_str_printf(arena, "%.*s not found", DV_FMT(who)), arena);

    add_details(status, about, what_of(about), arena);
    return status;
}

struct dv_api_status *dv_status_no_such_path(struct dv_arena *arena)
{
    struct dv_api_status *status = make(
        404, DV_STR("NotFound"), DV_STR("the server could not find the requested resource"), arena);

    status->details = DV_NEW(arena, struct dv_api_status_details);
    return status;
}

struct dv_api_status *dv_status_method_not_allowed(struct dv_arena *arena)
{
    struct dv_api_status *status =
        make(405, DV_STR("MethodNotAllowed"),
             DV_STR("the server does not allow this method on the requested resource"), arena);

    status->details = DV_NEW(arena, struct dv_api_status_details);
    return status;
}

struct dv_api_status *dv_status_already_exists(const struct dv_status_about *about,
                                               struct dv_arena *arena)
{
    dv_str who = subject(about, arena);
    struct dv_api_status *status =
        make(409, DV_STR("AlreadyExists"), dv_str_printf(arena, "%.*s already exists", DV_FMT(who)),
             arena);

    add_details(status, about, what_of(about), arena);
    return status;
}

struct dv_api_status *dv_status_conflict(const struct dv_status_about *about,
                                         struct dv_arena *arena, const char *fmt, ...)
{
    dv_str who = subject(about, arena);
    struct dv_api_status *status;
    dv_str why;
    va_list args;

    va_start(args, fmt);
    why = vprint(arena, fmt, args);
    va_end(args);
    status = make(409, DV_STR("Conflict"),
                  dv_str_printf(arena, "Operation cannot be fulfilled on %.*s: %.*s", DV_FMT(who),
                                DV_FMT(why)),
                  arena);
    add_details(status, about, what_of(about), arena);
    return status;
}

void dv_status_add_cause(struct dv_api_status *status, dv_str reason, dv_str message, dv_str field,
                         struct dv_arena *arena)
{
    struct dv_api_status_details *details = status->details;
    struct dv_api_status_cause *causes;

    if (!details)
        details = status->details = DV_NEW(arena, struct dv_api_status_details);
    causes = DV_NEW_ARRAY(arena, struct dv_api_status_cause, details->n_causes + 1);
    if (details->n_causes > 0)
        memcpy(causes, details->causes, details->n_causes * sizeof(causes[0]));
    causes[details->n_causes] =
        (struct dv_api_status_cause){.reason = reason, .message = message, .field = field};
    details->causes = causes;
    details->n_causes++;
}

/* ---- conflicts of apply ---- */

/* Prints the conflicts, which are in the order of their managers. */
static void print_conflicts(const struct dv_apply_conflict *conflicts, size_t n, struct dv_buf *buf)
{
    const char *before = "";

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !dv_str_eq(conflicts[i].manager, conflicts[i - 1].manager)) {
            dv_buf_printf(buf, "%sconflicts with %.*s:", before, DV_FMT(conflicts[i].manager));
            before = "\n";
        }
        dv_buf_printf(buf, "\n- %.*s", DV_FMT(conflicts[i].field));
    }
}

struct dv_api_status *dv_status_apply_conflict(const struct dv_apply_conflict *conflicts,
                                               size_t n_conflicts, struct dv_arena *arena)
{
    struct dv_api_status *status;
    struct dv_buf buf;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_buf_printf(&buf, "Apply failed with %zu conflict%s: ", n_conflicts,
                  n_conflicts == 1 ? "" : "s");
    if (n_conflicts == 1)
        dv_buf_printf(&buf, "conflict with %.*s: %.*s", DV_FMT(conflicts[0].manager),
                      DV_FMT(conflicts[0].field));
    else
        print_conflicts(conflicts, n_conflicts, &buf);
    status = make(409, DV_STR("Conflict"), dv_str_copy(dv_buf_str(&buf), arena), arena);
    dv_buf_fini(&buf);
    status->details = DV_NEW(arena, struct dv_api_status_details);
    status->details->causes = DV_NEW_ARRAY(arena, struct dv_api_status_cause, n_conflicts);
    status->details->n_causes = n_conflicts;
    for (size_t i = 0; i < n_conflicts; i++)
        status->details->causes[i] = (struct dv_api_status_cause){
            .reason = DV_STR("FieldManagerConflict"),
            .message = dv_str_printf(arena, "conflict with %.*s", DV_FMT(conflicts[i].manager)),
            .field = conflicts[i].field};
    return status;
}

struct dv_api_status *dv_status_expired(struct dv_arena *arena, const char *fmt, ...)
{
    va_list args;
    dv_str message;

    va_start(args, fmt);
    message = vprint(arena, fmt, args);
    va_end(args);
    return make(410, DV_STR("Expired"), message, arena);
}

/* ---- 422 ---- */

/* The reference tells a problem that was found twice once, but gives a cause for each. */
static void print_problems(const struct dv_problems *problems, struct dv_arena *arena,
                           struct dv_buf *buf)
{
    DV_CLEANUP(dv_map_fini) struct dv_map told;
    const struct dv_map_entry *entry;
    size_t at = 0;

    dv_map_init(&told);
    for (size_t i = 0; i < problems->n; i++) {
        const struct dv_problem *problem = &problems->v[i];
        dv_str text =
            dv_str_printf(arena, "%.*s: %.*s", DV_FMT(problem->field), DV_FMT(problem->detail));

        if (!dv_map_get(&told, text))
            (void)dv_map_set(&told, text, &problems->v[i]);
    }
    if (told.n > 1)
        dv_buf_add_char(buf, '[');
    while ((entry = dv_map_next(&told, &at)) != NULL) {
        dv_buf_add_c(buf, at > 1 ? ", " : "");
        dv_buf_add(buf, entry->key);
    }
    if (told.n > 1)
        dv_buf_add_char(buf, ']');
}

struct dv_api_status *dv_status_invalid(const struct dv_status_about *about,
                                        const struct dv_problems *problems, struct dv_arena *arena)
{
    dv_str what = about->what.n > 0 || !about->kind ? about->what : about->kind->name;
    dv_str who = qualify(what, about, arena);
    struct dv_api_status *status;
    struct dv_buf buf;

    dv_buf_init(&buf, MESSAGE_BYTES_MAX);
    dv_buf_printf(&buf, "%.*s \"%.*s\" is invalid: ", DV_FMT(who), DV_FMT(about->name));
    print_problems(problems, arena, &buf);
    status = make(422, DV_STR("Invalid"), dv_str_copy(dv_buf_str(&buf), arena), arena);
    dv_buf_fini(&buf);
    add_details(status, about, what, arena);
    status->details->causes = DV_NEW_ARRAY(arena, struct dv_api_status_cause, problems->n);
    status->details->n_causes = problems->n;
    for (size_t i = 0; i < problems->n; i++)
        status->details->causes[i] = (struct dv_api_status_cause){
            .reason = dv_str_from_c(dv_problem_reason(problems->v[i].type)),
            .message = dv_str_copy(problems->v[i].detail, arena),
            .field = dv_str_copy(problems->v[i].field, arena)};
    return status;
}

struct dv_api_status *dv_status_cannot_patch(struct dv_arena *arena)
{
    struct dv_api_status *status =
        make(422, DV_STR("Invalid"),
             DV_STR("the server rejected our request due to an error in our request"), arena);

    status->details = DV_NEW(arena, struct dv_api_status_details);
    return status;
}

/* ---- try again ---- */

static void set_retry(struct dv_api_status *status, int64_t seconds, struct dv_arena *arena)
{
    if (!status->details)
        status->details = DV_NEW(arena, struct dv_api_status_details);
    status->details->retry_after_seconds = seconds;
}

struct dv_api_status *dv_status_too_large_version(uint64_t wanted, uint64_t current,
                                                  struct dv_arena *arena)
{
    struct dv_api_status *status =
        make(504, DV_STR("Timeout"),
             dv_str_printf(arena, "Timeout: Too large resource version: %llu, current: %llu",
                           (unsigned long long)wanted, (unsigned long long)current),
             arena);

    dv_status_add_cause(status, DV_STR("ResourceVersionTooLarge"),
                        DV_STR("Too large resource version"), DV_STR_NONE, arena);
    set_retry(status, 1, arena);
    return status;
}

struct dv_api_status *dv_status_too_many_requests(int64_t retry_after_s, struct dv_arena *arena,
                                                  const char *fmt, ...)
{
    struct dv_api_status *status;
    va_list args;
    dv_str message;

    va_start(args, fmt);
    message = vprint(arena, fmt, args);
    va_end(args);
    status = make(429, DV_STR("TooManyRequests"), message, arena);
    set_retry(status, retry_after_s, arena);
    return status;
}

/* ---- our own errors ---- */

/* HTTP codes and our own. A code is looked up from the top; the other way round the first row of a
 * code counts. */
static const struct {
    enum dv_code code;
    int http;
    dv_str reason;
} codes[] = {
    {DV_INVALID_ARGUMENT,    400, DV_STR_INIT("BadRequest")          },
    {DV_INVALID_ARGUMENT,    422, DV_STR_INIT("Invalid")             },
    {DV_INVALID_ARGUMENT,    415, DV_STR_INIT("UnsupportedMediaType")},
    {DV_OUT_OF_RANGE,        410, DV_STR_INIT("Expired")             },
    {DV_UNAUTHENTICATED,     401, DV_STR_INIT("Unauthorized")        },
    {DV_PERMISSION_DENIED,   403, DV_STR_INIT("Forbidden")           },
    {DV_NOT_FOUND,           404, DV_STR_INIT("NotFound")            },
    {DV_ALREADY_EXISTS,      409, DV_STR_INIT("AlreadyExists")       },
    {DV_ABORTED,             409, DV_STR_INIT("Conflict")            },
    {DV_FAILED_PRECONDITION, 409, DV_STR_INIT("Conflict")            },
    {DV_RESOURCE_EXHAUSTED,  503, DV_STR_INIT("ServiceUnavailable")  },
    {DV_RESOURCE_EXHAUSTED,  429, DV_STR_INIT("TooManyRequests")     },
    {DV_UNAVAILABLE,         503, DV_STR_INIT("ServiceUnavailable")  },
    {DV_DEADLINE_EXCEEDED,   504, DV_STR_INIT("Timeout")             },
    {DV_UNIMPLEMENTED,       405, DV_STR_INIT("MethodNotAllowed")    },
    {DV_CANCELLED,           499, DV_STR_INIT("")                    },
};

struct dv_api_status *dv_status_from_err(const struct dv_err *err, struct dv_arena *arena)
{
    struct dv_api_status *status;
    size_t i = 0;

    while (i < DV_COUNT(codes) && codes[i].code != err->code)
        i++;
    if (i == DV_COUNT(codes))
        return dv_status_new(500, DV_STR("InternalError"), arena, "Internal error occurred: %s",
                             dv_err_text(err));
    status = dv_status_new(codes[i].http, codes[i].reason, arena, "%s", dv_err_text(err));
    if (codes[i].http == 503)
        set_retry(status, 1, arena);
    return status;
}

static enum dv_code code_of(const struct dv_api_status *status)
{
    /* 409 and 503 stand for two reasons each, so the reason decides. */
    for (size_t i = 0; i < DV_COUNT(codes); i++)
        if (codes[i].http == status->code && dv_str_eq(codes[i].reason, status->reason))
            return status->code == 503 ? DV_UNAVAILABLE : codes[i].code;
    for (size_t i = 0; i < DV_COUNT(codes); i++)
        if (codes[i].http == status->code)
            return codes[i].code;
    return status->code >= 400 && status->code < 500 ? DV_INVALID_ARGUMENT : DV_INTERNAL;
}

void dv_status_to_err(const struct dv_api_status *status, struct dv_err *err)
{
    (void)dv_fail(err, code_of(status), "%.*s", DV_FMT(status->message));
}
