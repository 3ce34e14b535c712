#include "lease/state/lease_row.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

/* ---- printing ---- */

static void add_text(struct dv_buf *buf, const char *key, dv_str value)
{
    if (value.n == 0)
        return;
    if (buf->n > 0 && buf->p[buf->n - 1] != '{' && buf->p[buf->n - 1] != '[')
        dv_buf_add_char(buf, ',');
    dv_buf_add_json(buf, dv_str_from_c(key));
    dv_buf_add_char(buf, ':');
    dv_buf_add_json(buf, value);
}

static void begin(struct dv_buf *buf, const char *key, char bracket)
{
    if (buf->n > 0 && buf->p[buf->n - 1] != '{' && buf->p[buf->n - 1] != '[')
        dv_buf_add_char(buf, ',');
    if (key) {
        dv_buf_add_json(buf, dv_str_from_c(key));
        dv_buf_add_char(buf, ':');
    }
    dv_buf_add_char(buf, bracket);
}

static void add_number(struct dv_buf *buf, const char *key, int64_t value)
{
    if (value == 0)
        return;
    if (buf->n > 0 && buf->p[buf->n - 1] != '{')
        dv_buf_add_char(buf, ',');
    dv_buf_add_json(buf, dv_str_from_c(key));
    dv_buf_add_char(buf, ':');
    dv_buf_add_i64(buf, value);
}

static void add_texts(struct dv_buf *buf, const char *key, const dv_str *values, size_t n)
{
    if (n == 0)
        return;
    begin(buf, key, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        dv_buf_add_json(buf, values[i]);
    }
    dv_buf_add_char(buf, ']');
}

static void add_owner(struct dv_buf *buf, const struct dv_lease_owner *owner)
{
    begin(buf, "owner", '{');
    add_number(buf, "kind", owner->kind);
    add_number(buf, "pid", owner->pid);
    add_text(buf, "start", owner->start);
    add_text(buf, "cgroup", owner->cgroup);
    add_text(buf, "unit", owner->unit);
    add_text(buf, "bootID", owner->boot_id);
    dv_buf_add_char(buf, '}');
}

static void add_request(struct dv_buf *buf, const struct dv_lease_spec *spec)
{
    begin(buf, "resources", '[');
    for (size_t i = 0; i < spec->n_resources; i++) {
        begin(buf, NULL, '{');
        add_text(buf, "name", spec->resources[i].name);
        add_number(buf, "n", (int64_t)spec->resources[i].n);
        dv_buf_add_char(buf, '}');
    }
    dv_buf_add_char(buf, ']');
    begin(buf, "devices", '[');
    for (size_t i = 0; i < spec->n_devices; i++) {
        begin(buf, NULL, '{');
        add_text(buf, "class", spec->devices[i].class);
        add_text(buf, "request", spec->devices[i].request);
        add_number(buf, "n", (int64_t)spec->devices[i].n);
        add_texts(buf, "where", spec->devices[i].where, spec->devices[i].n_where);
        add_texts(buf, "same", spec->devices[i].same, spec->devices[i].n_same);
        dv_buf_add_char(buf, '}');
    }
    dv_buf_add_char(buf, ']');
}

void dv_lease_row_print(const struct dv_lease_spec *spec, struct dv_buf *buf)
{
    begin(buf, NULL, '{');
    add_text(buf, "id", spec->id);
    add_text(buf, "uid", spec->uid);
    add_text(buf, "key", spec->key);
    add_number(buf, "user", spec->user);
    add_text(buf, "userName", spec->user_name);
    add_owner(buf, &spec->owner);
    add_texts(buf, "command", spec->command, spec->n_command);
    add_request(buf, spec);
    add_number(buf, "priority", spec->priority);
    add_number(buf, "sinceMs", (int64_t)spec->since_ms);
    add_number(buf, "endsMs", (int64_t)spec->ends_ms);
    add_number(buf, "graceSeconds", (int64_t)spec->grace_s);
    begin(buf, "end", '{');
    add_text(buf, "reason", spec->end.reason);
    add_text(buf, "message", spec->end.message);
    add_text(buf, "by", spec->end.by);
    dv_buf_add_c(buf, "}}");
}

/* ---- reading ---- */

static bool get_text(const struct dv_json *object, const char *key, dv_str *text,
                     struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    *text = DV_STR("");
    return !node || dv_json_as_str(node, text, err);
}

static bool get_number(const struct dv_json *object, const char *key, int64_t min, int64_t max,
                       int64_t *number, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    *number = 0;
    if (!node)
        return true;
    if (!dv_json_as_i64(node, number, err))
        return false;
    return (*number >= min && *number <= max) || dv_json_fail(node, err, "is out of its range");
}

static bool get_u64(const struct dv_json *object, const char *key, uint64_t *number,
                    struct dv_err *err)
{
    int64_t value;

    if (!get_number(object, key, 0, INT64_MAX, &value, err))
        return false;
    *number = (uint64_t)value;
    return true;
}

static bool get_texts(const struct dv_json *object, const char *key, struct dv_arena *arena,
                      const dv_str **texts, size_t *n, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));
    dv_str *made;

    *n = 0;
    *texts = NULL;
    if (!node)
        return true;
    if (!dv_json_expect(node, DV_JSON_ARRAY, err))
        return false;
    made = DV_NEW_ARRAY(arena, dv_str, dv_json_n(node));
    for (const struct dv_json *one = dv_json_first(node); one; one = dv_json_next(one))
        if (!dv_json_as_str(one, &made[(*n)++], err))
            return false;
    *texts = made;
    return true;
}

static bool get_owner(const struct dv_json *doc, struct dv_lease_owner *owner, struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(doc, DV_STR("owner"), err);
    int64_t kind;
    int64_t pid;

    if (!node || !dv_json_expect(node, DV_JSON_OBJECT, err) ||
        !get_number(node, "kind", DV_LEASE_OWNER_PROCESS, DV_LEASE_OWNER_UNIT, &kind, err) ||
        !get_number(node, "pid", 0, INT32_MAX, &pid, err))
        return false;
    owner->kind = (enum dv_lease_owner_kind)kind;
    owner->pid = (uint32_t)pid;
    return get_text(node, "start", &owner->start, err) &&
           get_text(node, "cgroup", &owner->cgroup, err) &&
           get_text(node, "unit", &owner->unit, err) &&
           get_text(node, "bootID", &owner->boot_id, err);
}

static bool get_resource(const struct dv_json *node, struct dv_lease_resource *resource,
                         struct dv_err *err)
{
    return dv_json_expect(node, DV_JSON_OBJECT, err) &&
           get_text(node, "name", &resource->name, err) && get_u64(node, "n", &resource->n, err);
}

static bool get_devices(const struct dv_json *node, struct dv_arena *arena,
                        struct dv_lease_devices *devices, struct dv_err *err)
{
    return dv_json_expect(node, DV_JSON_OBJECT, err) &&
           get_text(node, "class", &devices->class, err) &&
           get_text(node, "request", &devices->request, err) &&
           get_u64(node, "n", &devices->n, err) &&
           get_texts(node, "where", arena, &devices->where, &devices->n_where, err) &&
           get_texts(node, "same", arena, &devices->same, &devices->n_same, err);
}

static bool get_request(const struct dv_json *doc, struct dv_arena *arena,
                        struct dv_lease_spec *spec, struct dv_err *err)
{
    const struct dv_json *resources = dv_json_require(doc, DV_STR("resources"), err);
    const struct dv_json *devices = resources ? dv_json_require(doc, DV_STR("devices"), err) : NULL;

    if (!devices || !dv_json_expect(resources, DV_JSON_ARRAY, err) ||
        !dv_json_expect(devices, DV_JSON_ARRAY, err))
        return false;
    spec->resources = DV_NEW_ARRAY(arena, struct dv_lease_resource, dv_json_n(resources));
    spec->devices = DV_NEW_ARRAY(arena, struct dv_lease_devices, dv_json_n(devices));
    for (const struct dv_json *one = dv_json_first(resources); one; one = dv_json_next(one))
        if (!get_resource(one, &spec->resources[spec->n_resources++], err))
            return false;
    for (const struct dv_json *one = dv_json_first(devices); one; one = dv_json_next(one))
        if (!get_devices(one, arena, &spec->devices[spec->n_devices++], err))
            return false;
    return true;
}

static bool get_end(const struct dv_json *doc, struct dv_lease_end *end, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(doc, DV_STR("end"));

    *end = (struct dv_lease_end){.reason = DV_STR("")};
    return !node ||
           (dv_json_expect(node, DV_JSON_OBJECT, err) &&
            get_text(node, "reason", &end->reason, err) &&
            get_text(node, "message", &end->message, err) && get_text(node, "by", &end->by, err));
}

bool dv_lease_row_parse(dv_str text, struct dv_arena *arena, struct dv_lease_spec *spec,
                        struct dv_err *err)
{
    const struct dv_json_opts opts = {.bytes_max = DV_LEASE_ROW_BYTES_MAX, .depth_max = 16};
    const struct dv_json *doc = dv_json_parse(text, &opts, arena, err);
    struct dv_lease_spec made = {0};
    int64_t user;

    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err) || !get_text(doc, "id", &made.id, err) ||
        !get_text(doc, "uid", &made.uid, err) || !get_text(doc, "key", &made.key, err) ||
        !get_owner(doc, &made.owner, err) || !get_text(doc, "userName", &made.user_name, err) ||
        !get_number(doc, "user", 0, UINT32_MAX, &user, err) ||
        !get_texts(doc, "command", arena, &made.command, &made.n_command, err) ||
        !get_request(doc, arena, &made, err) ||
        !get_number(doc, "priority", INT32_MIN, INT32_MAX, &made.priority, err) ||
        !get_u64(doc, "sinceMs", &made.since_ms, err) ||
        !get_u64(doc, "endsMs", &made.ends_ms, err) ||
        !get_u64(doc, "graceSeconds", &made.grace_s, err) || !get_end(doc, &made.end, err))
        return false;
    if (made.id.n == 0 || made.uid.n == 0)
        return dv_json_fail(doc, err, "has no id or no uid");
    made.user = (uint32_t)user;
    *spec = made;
    return true;
}
