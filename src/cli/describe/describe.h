/* describe.h - objects for people to read: what matters, by kind. */
#ifndef DV_CLI_DESCRIBE_H
#define DV_CLI_DESCRIBE_H

#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "number/number.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;
struct dv_json;

struct dv_describe {
    struct dv_arena *arena;
    struct dv_buf *buf;
    struct dv_time now;
};

/* When an event was last seen, and how often. */
struct dv_time dv_event_last_seen(const struct dv_api_event *event);
int64_t dv_event_count(const struct dv_api_event *event);

/* Describes all of an object except its events. `doc` is the object as the server sent it: members
 * that no file here knows are printed from there. */
void dv_describe_object(const struct dv_describe *d, const struct dv_object *object,
                        const struct dv_json *doc);
/* Describes the events, the oldest first. */
void dv_describe_events(const struct dv_describe *d, const struct dv_api_event *const *events,
                        size_t n_events);

/* ---- for the files of single kinds ---- */

void dv_describe_pod(const struct dv_describe *d, const struct dv_api_pod *pod);
void dv_describe_node(const struct dv_describe *d, const struct dv_api_node *node);
void dv_describe_claim(const struct dv_describe *d, const struct dv_api_resource_claim *claim);
void dv_describe_template(const struct dv_describe *d,
                          const struct dv_api_resource_claim_template *template);
void dv_describe_slice(const struct dv_describe *d, const struct dv_api_resource_slice *slice);
void dv_describe_class(const struct dv_describe *d, const struct dv_api_device_class *class);
void dv_describe_taint_rule(const struct dv_describe *d,
                            const struct dv_api_device_taint_rule *rule);

/* "Label:   value", `level` steps in; further lines of the value stand under its first. An empty
 * value prints the label alone, as a heading. */
void dv_describe_line(const struct dv_describe *d, unsigned level, const char *label,
                      const char *fmt, ...) DV_PRINTF(4, 5);
/* Like dv_describe_line, but prints nothing when the text is empty. */
void dv_describe_text(const struct dv_describe *d, unsigned level, const char *label, dv_str text);
/* "a=b", one a line; <none> without any. */
void dv_describe_entries(const struct dv_describe *d, unsigned level, const char *label,
                         const struct dv_str_entry *entries, size_t n);
/* Prints one quantity a line, under a heading; nothing when there are none. */
void dv_describe_quantities(const struct dv_describe *d, unsigned level, const char *label,
                            const struct dv_quantity_entry *entries, size_t n);
/* A table, `level` steps in. */
void dv_describe_table(const struct dv_describe *d, unsigned level, struct dv_table *table);

struct dv_describe_condition {
    dv_str type;
    dv_str status;
    dv_str reason;
    dv_str message;
    struct dv_time since;
};
/* Prints conditions as a table under a heading; nothing when there are none. */
void dv_describe_conditions(const struct dv_describe *d, unsigned level,
                            const struct dv_describe_condition *conditions, size_t n);
void dv_describe_configs(const struct dv_describe *d, unsigned level, dv_str source,
                         const dv_str *requests, size_t n_requests,
                         const struct dv_api_opaque_device_configuration *opaque);
void dv_describe_selectors(const struct dv_describe *d, unsigned level,
                           const struct dv_api_device_selector *selectors, size_t n);

/* The age as a text in the arena; never NULL. */
const char *dv_describe_age(const struct dv_describe *d, struct dv_time since);
dv_str dv_describe_quantity(const struct dv_describe *d, const struct dv_quantity *quantity);
/* "a, b, c" */
dv_str dv_describe_join(const struct dv_describe *d, const dv_str *texts, size_t n);
/* "key=value:effect" */
dv_str dv_describe_taint(const struct dv_describe *d, dv_str key, dv_str value, dv_str effect);
/* "key In [a, b]", the terms with " or " between. */
dv_str dv_describe_node_selector(const struct dv_describe *d,
                                 const struct dv_api_node_selector *selector);

#endif
