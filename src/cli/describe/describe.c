/* describe.c - what all descriptions share, and those of kinds without a file of their own. */
#include "cli/describe/describe.h"

#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "cli/cli.h"
#include "resource/table.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1u << 20)
#define STEP 2u
/* Where values begin, unless the label is longer. */
#define VALUE_COLUMN 18u

/* ---- lines ---- */

void dv_describe_line(const struct dv_describe *d, unsigned level, const char *label,
                      const char *fmt, ...)
{
    size_t indent = (size_t)level * STEP;
    size_t column = dv_size_max(VALUE_COLUMN, indent + strlen(label) + 2);
    struct dv_buf value;
    dv_str rest;
    dv_str line;
    va_list args;

    dv_buf_init(&value, TEXT_BYTES_MAX);
    va_start(args, fmt);
    dv_buf_vprintf(&value, fmt, args);
    va_end(args);
    rest = dv_str_trim(dv_buf_str(&value));
    dv_buf_printf(d->buf, "%*s%s:", (int)indent, "", label);
    if (rest.n == 0)
        dv_buf_add_char(d->buf, '\n');
    for (size_t at = indent + strlen(label) + 1; rest.n && dv_str_split(&rest, '\n', &line); at = 0)
        dv_buf_printf(d->buf, "%*s%s\n", (int)(column - at), "", dv_cli_plain(line, d->arena));
    dv_buf_fini(&value);
}

void dv_describe_text(const struct dv_describe *d, unsigned level, const char *label, dv_str text)
{
    if (text.n)
        dv_describe_line(d, level, label, "%.*s", DV_FMT(text));
}

void dv_describe_entries(const struct dv_describe *d, unsigned level, const char *label,
                         const struct dv_str_entry *entries, size_t n)
{
    dv_str text = DV_STR("<none>");

    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(d->arena, "%.*s%s%.*s=%.*s", i ? dv_str_fmt_len(text) : 0, text.p,
                             i ? "\n" : "", DV_FMT(entries[i].key), DV_FMT(entries[i].value));
    dv_describe_line(d, level, label, "%.*s", DV_FMT(text));
}

void dv_describe_quantities(const struct dv_describe *d, unsigned level, const char *label,
                            const struct dv_quantity_entry *entries, size_t n)
{
    if (n > 0)
        dv_describe_line(d, level, label, "%s", "");
    for (size_t i = 0; i < n; i++)
        dv_describe_line(d, level + 1, dv_str_to_c(entries[i].key, d->arena), "%.*s",
                         DV_FMT(dv_describe_quantity(d, &entries[i].value)));
}

void dv_describe_table(const struct dv_describe *d, unsigned level, struct dv_table *table)
{
    dv_table_print_to(table, true, level * STEP, d->buf);
}

/* ---- values ---- */

const char *dv_describe_age(const struct dv_describe *d, struct dv_time since)
{
    if (!since.is_set)
        return "<unknown>";
    return dv_str_to_c(dv_age_print(d->now.seconds - since.seconds, d->arena), d->arena);
}

dv_str dv_describe_quantity(const struct dv_describe *d, const struct dv_quantity *quantity)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    text = dv_str_copy(dv_buf_str(&buf), d->arena);
    dv_buf_fini(&buf);
    return text;
}

dv_str dv_describe_join(const struct dv_describe *d, const dv_str *texts, size_t n)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(d->arena, "%.*s%s%.*s", DV_FMT(text), i ? ", " : "", DV_FMT(texts[i]));
    return text;
}

dv_str dv_describe_taint(const struct dv_describe *d, dv_str key, dv_str value, dv_str effect)
{
    return dv_str_printf(d->arena, "%.*s%s%.*s:%.*s", DV_FMT(key), value.n ? "=" : "",
                         DV_FMT(value), DV_FMT(effect));
}

static dv_str requirements(const struct dv_describe *d, dv_str before,
                           const struct dv_api_node_selector_requirement *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        before =
            dv_str_printf(d->arena, "%.*s%s%.*s %.*s [%.*s]", DV_FMT(before),
                          before.n ? " and " : "", DV_FMT(list[i].key), DV_FMT(list[i].operator),
                          DV_FMT(dv_describe_join(d, list[i].values, list[i].n_values)));
    return before;
}

dv_str dv_describe_node_selector(const struct dv_describe *d,
                                 const struct dv_api_node_selector *selector)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < selector->n_node_selector_terms; i++) {
        const struct dv_api_node_selector_term *term = &selector->node_selector_terms[i];
        dv_str one =
            requirements(d, DV_STR(""), term->match_expressions, term->n_match_expressions);

        one = requirements(d, one, term->match_fields, term->n_match_fields);
        text = dv_str_printf(d->arena, "%.*s%s%.*s", DV_FMT(text), i ? "\nor " : "", DV_FMT(one));
    }
    return text;
}

/* ---- parts ---- */

void dv_describe_conditions(const struct dv_describe *d, unsigned level,
                            const struct dv_describe_condition *conditions, size_t n)
{
    static const char *const headers[] = {"Type", "Status", "Since", "Reason", "Message"};
    struct dv_table table;

    if (n == 0)
        return;
    dv_describe_line(d, level, "Conditions", "%s", "");
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n; i++) {
        dv_table_add(&table, dv_cli_plain(conditions[i].type, d->arena));
        dv_table_add(&table, dv_cli_plain(conditions[i].status, d->arena));
        dv_table_add(&table, dv_describe_age(d, conditions[i].since));
        dv_table_add(&table, dv_cli_plain(conditions[i].reason, d->arena));
        dv_table_add(&table, dv_cli_plain(conditions[i].message, d->arena));
    }
    dv_describe_table(d, level + 1, &table);
}

void dv_describe_selectors(const struct dv_describe *d, unsigned level,
                           const struct dv_api_device_selector *selectors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (selectors[i].cel)
            dv_describe_text(d, level, "Selector", selectors[i].cel->expression);
}

void dv_describe_configs(const struct dv_describe *d, unsigned level, dv_str source,
                         const dv_str *requests, size_t n_requests,
                         const struct dv_api_opaque_device_configuration *opaque)
{
    dv_describe_text(d, level, "From", source);
    dv_describe_text(d, level, "Requests", dv_describe_join(d, requests, n_requests));
    if (!opaque)
        return;
    dv_describe_text(d, level, "Driver", opaque->driver);
    dv_describe_text(d, level, "Parameters", opaque->parameters);
}

static void describe_meta(const struct dv_describe *d, const struct dv_object *object)
{
    const struct dv_api_object_meta *meta = object->meta;

    dv_describe_line(d, 0, "Name", "%.*s", DV_FMT(meta->name));
    if (object->kind->is_namespaced)
        dv_describe_text(d, 0, "Namespace", meta->namespace);
    dv_describe_entries(d, 0, "Labels", meta->labels, meta->n_labels);
    dv_describe_entries(d, 0, "Annotations", meta->annotations, meta->n_annotations);
    dv_describe_line(d, 0, "Age", "%s", dv_describe_age(d, meta->creation_timestamp));
    if (meta->deletion_timestamp.is_set)
        dv_describe_line(d, 0, "Deleting", "since %s",
                         dv_describe_age(d, meta->deletion_timestamp));
    dv_describe_text(d, 0, "Finalizers", dv_describe_join(d, meta->finalizers, meta->n_finalizers));
    for (size_t i = 0; i < meta->n_owner_references; i++) {
        const struct dv_api_owner_reference *owner = &meta->owner_references[i];

        dv_describe_line(d, 0, owner->controller && *owner->controller ? "Controlled by" : "Owner",
                         "%.*s/%.*s", DV_FMT(owner->kind), DV_FMT(owner->name));
    }
}

/* Secrets are not for screens: their names and sizes are. */
static void describe_secret(const struct dv_describe *d, const struct dv_api_secret *secret)
{
    dv_describe_text(d, 0, "Type", secret->type);
    dv_describe_line(d, 0, "Data", "%s", secret->n_data ? "" : "<none>");
    for (size_t i = 0; i < secret->n_data; i++)
        dv_describe_line(d, 1, dv_str_to_c(secret->data[i].key, d->arena), "%zu bytes",
                         secret->data[i].value.n);
}

/* Describes all members except those that every object has, as YAML. */
static void describe_rest(const struct dv_describe *d, const struct dv_json *doc)
{
    static const dv_str known[] = {DV_STR_INIT("apiVersion"), DV_STR_INIT("kind"),
                                   DV_STR_INIT("metadata")};
    struct dv_json *rest = dv_json_copy(doc, d->arena);

    for (size_t i = 0; i < DV_COUNT(known); i++) {
        struct dv_json *node = dv_json_get(rest, known[i]);

        if (node)
            dv_json_remove(node);
    }
    if (dv_json_n(rest) > 0)
        dv_yaml_print(rest, NULL, d->buf);
}

void dv_describe_object(const struct dv_describe *d, const struct dv_object *object,
                        const struct dv_json *doc)
{
    describe_meta(d, object);
    switch (object->kind->id) {
    case DV_KIND_POD:
        dv_describe_pod(d, object->value);
        break;
    case DV_KIND_NODE:
        dv_describe_node(d, object->value);
        break;
    case DV_KIND_CLAIM:
        dv_describe_claim(d, object->value);
        break;
    case DV_KIND_TEMPLATE:
        dv_describe_template(d, object->value);
        break;
    case DV_KIND_SLICE:
        dv_describe_slice(d, object->value);
        break;
    case DV_KIND_CLASS:
        dv_describe_class(d, object->value);
        break;
    case DV_KIND_TAINT_RULE:
        dv_describe_taint_rule(d, object->value);
        break;
    case DV_KIND_SECRET:
        describe_secret(d, object->value);
        break;
    case DV_KIND_NAMESPACE:
    case DV_KIND_CLUSTER_ROLE_BINDING:
    case DV_KIND_ROLE_BINDING:
    case DV_KIND_CLUSTER_ROLE:
    case DV_KIND_ROLE:
    case DV_KIND_PRIORITY_CLASS:
    case DV_KIND_RESOURCE_QUOTA:
    case DV_KIND_DAEMON_SET:
    case DV_KIND_CONTROLLER_REVISION:
    case DV_KIND_SERVICE:
    case DV_KIND_ENDPOINTS:
    case DV_KIND_ENDPOINT_SLICE:
    case DV_KIND_VALIDATING_POLICY:
    case DV_KIND_VALIDATING_POLICY_BINDING:
    case DV_KIND_VALIDATING_WEBHOOKS:
    case DV_KIND_MUTATING_WEBHOOKS:
    case DV_KIND_DEPLOYMENT:
    case DV_KIND_REPLICA_SET:
    case DV_KIND_JOB:
    case DV_KIND_DISRUPTION_BUDGET:
    case DV_KIND_EVENT:
    case DV_KIND_SERVICE_ACCOUNT:
    case DV_KIND_CONFIG_MAP:
    case DV_KIND_LEASE:
    case DV_KIND_RUNTIME_CLASS:
    case DV_KIND_CUSTOM_DEFINITION:
    case DV_KIND_CUSTOM:
    case DV_N_KINDS:
        describe_rest(d, doc);
        break;
    }
}
