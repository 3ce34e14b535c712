/* select_field.c - field selectors: "metadata.name=x,spec.nodeName!=". Each kind has a few fields
 * that can be asked for. */
#include "resource/select.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/codec/object_row.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select/select_row.h"

/* How a kind says that it does not have a field label. */
enum refusal {
    REFUSE_DEFAULT, /* "x" is not a known field selector: only "metadata.name", ... */
    REFUSE_PLAIN,   /* field label not supported: x */
    REFUSE_NAMED,   /* field label not supported for resource.k8s.io/v1, Kind=X: x */
};

typedef dv_str get_text(const struct dv_object *object);

struct label {
    dv_str name;
    size_t offset; /* of the text in the object's struct, unless there is `get` */
    get_text *get;
};

/* The texts that can be asked for are members of an object's structs, at most this deep. */
#define PATH_MAX_DEPTH 3u

struct term {
    dv_str label; /* as it was asked for */
    const struct label *field;
    dv_str value;
    bool is_not;
    /* The numbers that lead to the text in a row; none: only an unpacked object tells. */
    uint32_t path[PATH_MAX_DEPTH];
    size_t n_path;
};

struct dv_field_selector {
    DV_VEC(struct term) all;
};

/* ---- the fields ---- */

static dv_str get_name(const struct dv_object *object)
{
    return object->meta->name;
}

static dv_str get_namespace(const struct dv_object *object)
{
    return object->meta->namespace;
}

static dv_str bool_text(bool value)
{
    return value ? DV_STR("true") : DV_STR("false");
}

static dv_str pod_host_network(const struct dv_object *object)
{
    return bool_text(((const struct dv_api_pod *)object->value)->spec.host_network);
}

static dv_str node_unschedulable(const struct dv_object *object)
{
    return bool_text(((const struct dv_api_node *)object->value)->spec.unschedulable);
}

static dv_str event_source(const struct dv_object *object)
{
    const struct dv_api_event *event = object->value;

    return event->source.component.n > 0 ? event->source.component : event->reporting_component;
}

static dv_str pod_ip(const struct dv_object *object)
{
    const struct dv_api_pod_status *status = &((const struct dv_api_pod *)object->value)->status;

    return status->n_pod_i_ps > 0 ? status->pod_i_ps[0].ip : DV_STR("");
}

/* The label is known, but the reference has no value for it. */
static dv_str get_nothing(const struct dv_object *object)
{
    (void)object;
    return DV_STR("");
}

/* A text of a struct, which may be in a struct inside. */
#define TEXT(name, type, member)                                                                   \
    {                                                                                              \
        DV_STR_INIT(name), offsetof(struct type, member), NULL                                     \
    }
#define NAME                                                                                       \
    {                                                                                              \
        DV_STR_INIT("metadata.name"), 0, get_name                                                  \
    }
#define NAMESPACE                                                                                  \
    {                                                                                              \
        DV_STR_INIT("metadata.namespace"), 0, get_namespace                                        \
    }

static const struct label meta_labels[] = {NAME, NAMESPACE};
static const struct label pod_labels[] = {
    NAME,
    NAMESPACE,
    TEXT("spec.nodeName", dv_api_pod, spec.node_name),
    TEXT("spec.host", dv_api_pod, spec.node_name), /* the name that spec.nodeName had before v1 */
    TEXT("spec.restartPolicy", dv_api_pod, spec.restart_policy),
    TEXT("spec.schedulerName", dv_api_pod, spec.scheduler_name),
    TEXT("spec.serviceAccountName", dv_api_pod, spec.service_account_name),
    {DV_STR_INIT("spec.hostNetwork"), 0, pod_host_network},
    TEXT("status.phase", dv_api_pod, status.phase),
    {DV_STR_INIT("status.podIP"),     0, pod_ip          },
    {DV_STR_INIT("status.podIPs"),    0, get_nothing     },
    TEXT("status.nominatedNodeName", dv_api_pod, status.nominated_node_name),
};
static const struct label node_labels[] = {
    NAME, {DV_STR_INIT("spec.unschedulable"), 0, node_unschedulable}
};
static const struct label namespace_labels[] = {
    NAME, TEXT("status.phase", dv_api_namespace, status.phase)};
static const struct label secret_labels[] = {NAME, NAMESPACE, TEXT("type", dv_api_secret, type)};
static const struct label slice_labels[] = {
    NAME,
    TEXT("spec.driver", dv_api_resource_slice, spec.driver),
    TEXT("spec.nodeName", dv_api_resource_slice, spec.node_name),
};
static const struct label event_labels[] = {
    NAME,
    NAMESPACE,
    TEXT("involvedObject.kind", dv_api_event, involved_object.kind),
    TEXT("involvedObject.namespace", dv_api_event, involved_object.namespace),
    TEXT("involvedObject.name", dv_api_event, involved_object.name),
    TEXT("involvedObject.uid", dv_api_event, involved_object.uid),
    TEXT("involvedObject.apiVersion", dv_api_event, involved_object.api_version),
    TEXT("involvedObject.resourceVersion", dv_api_event, involved_object.resource_version),
    TEXT("involvedObject.fieldPath", dv_api_event, involved_object.field_path),
    TEXT("reason", dv_api_event, reason),
    TEXT("reportingComponent", dv_api_event, reporting_component),
    {DV_STR_INIT("source"), 0, event_source},
    TEXT("type", dv_api_event, type),
};
static const struct label new_event_labels[] = {
    NAME,
    NAMESPACE,
    TEXT("regarding.kind", dv_api_event, involved_object.kind),
    TEXT("regarding.namespace", dv_api_event, involved_object.namespace),
    TEXT("regarding.name", dv_api_event, involved_object.name),
    TEXT("regarding.uid", dv_api_event, involved_object.uid),
    TEXT("regarding.apiVersion", dv_api_event, involved_object.api_version),
    TEXT("regarding.resourceVersion", dv_api_event, involved_object.resource_version),
    TEXT("regarding.fieldPath", dv_api_event, involved_object.field_path),
    TEXT("reason", dv_api_event, reason),
    TEXT("reportingController", dv_api_event, reporting_component),
    TEXT("type", dv_api_event, type),
};

struct labels {
    enum dv_kind_id kind;
    dv_str group;
    enum refusal refusal;
    const struct label *v;
    size_t n;
};

#define LABELS(kind, group, refusal, labels)                                                       \
    {                                                                                              \
        kind, DV_STR_INIT(group), refusal, labels, DV_COUNT(labels)                                \
    }

/* All other kinds have only their name and namespace. */
static const struct labels of_kinds[] = {
    LABELS(DV_KIND_POD, "", REFUSE_PLAIN, pod_labels),
    LABELS(DV_KIND_NODE, "", REFUSE_PLAIN, node_labels),
    LABELS(DV_KIND_NAMESPACE, "", REFUSE_PLAIN, namespace_labels),
    LABELS(DV_KIND_SECRET, "", REFUSE_PLAIN, secret_labels),
    LABELS(DV_KIND_EVENT, "", REFUSE_PLAIN, event_labels),
    LABELS(DV_KIND_EVENT, "events.k8s.io", REFUSE_PLAIN, new_event_labels),
    LABELS(DV_KIND_SLICE, "resource.k8s.io", REFUSE_NAMED, slice_labels),
};

static const struct labels others = LABELS(DV_N_KINDS, "", REFUSE_DEFAULT, meta_labels);

static const struct labels *labels_of(const struct dv_kind *kind, dv_str group)
{
    for (size_t i = 0; i < DV_COUNT(of_kinds); i++)
        if (of_kinds[i].kind == kind->id && dv_str_eq(of_kinds[i].group, group))
            return &of_kinds[i];
    return &others;
}

/* ---- reading ---- */

struct parser {
    const struct dv_kind *kind;
    dv_str text; /* the whole selector */
    struct dv_arena *arena;
    struct dv_err *err;
};

static bool refuse(const struct parser *parser, enum refusal refusal, dv_str label)
{
    struct dv_buf buf;

    switch (refusal) {
    case REFUSE_DEFAULT:
        return dv_fail_in(parser->err, parser->arena, DV_INVALID_ARGUMENT,
                          "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                          "\"metadata.namespace\"",
                          DV_FMT(label));
    case REFUSE_PLAIN:
        return dv_fail_in(parser->err, parser->arena, DV_INVALID_ARGUMENT,
                          "field label not supported: %.*s", DV_FMT(label));
    case REFUSE_NAMED:
        break;
    }
    dv_buf_init(&buf, DV_ERR_MSG_BYTES);
    dv_api_version_print(&parser->kind->versions[0], &buf);
    (void)dv_fail_in(parser->err, parser->arena, DV_INVALID_ARGUMENT,
                     "field label not supported for %s, Kind=%.*s: %.*s", dv_buf_c(&buf),
                     DV_FMT(parser->kind->name), DV_FMT(label));
    dv_buf_fini(&buf);
    return false;
}

/* Takes the part before the first comma that is not escaped off *rest. */
static bool split_term(dv_str *rest, dv_str *part)
{
    size_t n = 0;

    if (!rest->p)
        return false;
    while (n < rest->n && rest->p[n] != ',')
        n += rest->p[n] == '\\' ? 2 : 1;
    *part = dv_str_slice(*rest, 0, n);
    *rest = n < rest->n ? dv_str_slice(*rest, n + 1, rest->n) : DV_STR_NONE;
    return true;
}

/* "\," is a comma, "\=" an equals sign, "\\" a backslash; none of them stands for itself. */
static bool unescape(const struct parser *parser, dv_str raw, dv_str *value)
{
    char *out = dv_arena_alloc_raw(parser->arena, raw.n, 1);
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];

        if (c == ',' || c == '=')
            return dv_fail_in(parser->err, parser->arena, DV_INVALID_ARGUMENT,
                              "invalid field selector: unescaped character in value: %d", c);
        if (c == '\\') {
            dv_str next = dv_str_slice(raw, i + 1, raw.n);

            if (next.n == 0 || !strchr("\\,=", next.p[0]) || next.p[0] == '\0')
                return dv_fail_in(
                    parser->err, parser->arena, DV_INVALID_ARGUMENT,
                    "invalid field selector: invalid escape sequence: \\%.*s",
                    DV_FMT(dv_str_slice(next, 0, next.n ? dv_str_utf8_char(next) : 0)));
            c = next.p[0];
            i++;
        }
        out[n++] = c;
    }
    *value = (dv_str){out, n};
    return true;
}

/* Splits a term at its first operator. */
static bool parse_term(const struct parser *parser, dv_str part, struct term *term)
{
    size_t n = 0;
    size_t op_n;

    while (n < part.n && part.p[n] != '=' &&
           !dv_str_starts_with(dv_str_slice(part, n, part.n), DV_STR("!=")))
        n++;
    if (n == part.n)
        return dv_fail_in(parser->err, parser->arena, DV_INVALID_ARGUMENT,
                          "invalid selector: '%.*s'; can't understand '%.*s'", DV_FMT(parser->text),
                          DV_FMT(part));
    term->is_not = part.p[n] == '!';
    op_n = n + 1 < part.n && part.p[n + 1] == '=' ? 2 : 1;
    term->label = dv_str_slice(part, 0, n);
    return unescape(parser, dv_str_slice(part, n + op_n, part.n), &term->value);
}

/* Parses the terms in the order of their texts: of several mistakes the reference reports that one
 * first. */
static bool parse_terms(const struct parser *parser, struct dv_field_selector *selector)
{
    DV_VEC(dv_str) parts = {0};
    dv_str rest = parser->text;
    dv_str part;

    while (split_term(&rest, &part))
        if (part.n > 0)
            *dv_vec_add_in(&parts, parser->arena) = part;
    if (parts.n > 0)
        qsort(parts.v, parts.n, sizeof(parts.v[0]), dv_str_compare);
    for (size_t i = 0; i < parts.n; i++)
        if (!parse_term(parser, parts.v[i], dv_vec_add_in(&selector->all, parser->arena)))
            return false;
    return true;
}

static bool find_label(const struct parser *parser, const struct labels *labels, struct term *term)
{
    for (size_t i = 0; i < labels->n; i++) {
        if (dv_str_eq(labels->v[i].name, term->label)) {
            term->field = &labels->v[i];
            return true;
        }
    }
    return refuse(parser, labels->refusal, term->label);
}

/* Finds the field whose text is at `offset` of the message's struct. */
static void find_path(const struct dv_message *message, size_t offset, struct term *term)
{
    for (size_t i = 0; message && i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        if (field->shape != DV_SHAPE_ONE || offset < field->offset)
            continue;
        if (field->type == DV_TYPE_MESSAGE && offset - field->offset < field->message->size) {
            assert(term->n_path < PATH_MAX_DEPTH);
            term->path[term->n_path++] = field->number;
            find_path(field->message, offset - field->offset, term);
            return;
        }
        if (field->type == DV_TYPE_STRING && offset == field->offset) {
            assert(term->n_path < PATH_MAX_DEPTH);
            term->path[term->n_path++] = field->number;
            return;
        }
    }
    term->n_path = 0;
}

struct dv_field_selector *dv_field_selector_parse(const struct dv_kind *kind, dv_str group,
                                                  dv_str text, struct dv_arena *arena,
                                                  struct dv_err *err)
{
    struct parser parser = {.kind = kind, .text = text, .arena = arena, .err = err};
    struct dv_field_selector *selector = DV_NEW(arena, struct dv_field_selector);
    const struct labels *labels = labels_of(kind, group);

    if (!parse_terms(&parser, selector))
        return NULL;
    for (size_t i = 0; i < selector->all.n; i++) {
        struct term *term = &selector->all.v[i];

        if (!find_label(&parser, labels, term))
            return NULL;
        if (!term->field->get)
            find_path(kind->versions[0].message, term->field->offset, term);
    }
    return selector;
}

/* ---- asking ---- */

static dv_str text_in_row(const struct term *term, const struct dv_object *object)
{
    dv_str at = dv_row_body(dv_object_row(object));

    if (term->field->get == get_name)
        return dv_object_names(object).name;
    if (term->field->get == get_namespace)
        return dv_object_names(object).namespace;
    for (size_t i = 0; i < term->n_path; i++)
        if (!dv_row_find(at, term->path[i], &at))
            return DV_STR("");
    return at;
}

static dv_str text_of(const struct term *term, const struct dv_object *object)
{
    const struct label *field = term->field;

    if (!object->value)
        return text_in_row(term, object);
    if (field->get)
        return field->get(object);
    return *(const dv_str *)(const void *)((const char *)object->value + field->offset);
}

bool dv_field_selector_reads_rows(const struct dv_field_selector *selector)
{
    for (size_t i = 0; i < selector->all.n; i++) {
        const struct term *term = &selector->all.v[i];

        if (term->n_path == 0 && term->field->get != get_name && term->field->get != get_namespace)
            return false;
    }
    return true;
}

bool dv_field_selector_matches(const struct dv_field_selector *selector,
                               const struct dv_object *object)
{
    for (size_t i = 0; i < selector->all.n; i++) {
        const struct term *term = &selector->all.v[i];

        if (dv_str_eq(text_of(term, object), term->value) == term->is_not)
            return false;
    }
    return true;
}

bool dv_field_selector_is_empty(const struct dv_field_selector *selector)
{
    return selector->all.n == 0;
}

bool dv_field_selector_demands(const struct dv_field_selector *selector, dv_str label,
                               dv_str *value)
{
    for (size_t i = 0; i < selector->all.n; i++) {
        const struct term *term = &selector->all.v[i];

        if (!term->is_not && dv_str_eq(term->label, label)) {
            *value = term->value;
            return true;
        }
    }
    return false;
}

bool dv_field_selector_text_demands(dv_str text, dv_str label, struct dv_arena *arena,
                                    dv_str *value)
{
    struct dv_err err;
    struct parser parser = {.text = text, .arena = arena, .err = &err};
    struct dv_field_selector selector = {0};

    return parse_terms(&parser, &selector) && dv_field_selector_demands(&selector, label, value);
}
