/* select.h - label and field selectors: parsed once, then asked of objects. */
#ifndef DV_RESOURCE_SELECT_H
#define DV_RESOURCE_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_device_taint_rule;
struct dv_api_label_selector;
struct dv_api_node_selector;
struct dv_arena;
struct dv_err;
struct dv_kind;
struct dv_object;
struct dv_str_entry;
struct dv_label_selector;
struct dv_field_selector;

/* Parses "a=b,c in (d,e),!f" into `arena`; keeps `text`. An empty text selects everything.
 * DV_INVALID_ARGUMENT with the reference's message. */
struct dv_label_selector *dv_label_selector_parse(dv_str text, struct dv_arena *arena,
                                                  struct dv_err *err);
/* Makes the selector that an object of the API has, in `arena`; keeps its texts. NULL: an operator
 * that is none, which matches nothing. */
struct dv_label_selector *dv_label_selector_of(const struct dv_api_label_selector *selector,
                                               struct dv_arena *arena);
bool dv_label_selector_matches(const struct dv_label_selector *selector,
                               const struct dv_str_entry *labels, size_t n_labels);
/* "a=b,c in (d,e),!f", in the order of the keys; empty for a selector of everything, and for
 * NULL. */
dv_str dv_selector_print(const struct dv_api_label_selector *selector, struct dv_arena *arena);
bool dv_label_selector_is_empty(const struct dv_label_selector *selector);

/* Parses "metadata.name=x,spec.nodeName!=". DV_INVALID_ARGUMENT: the kind has no such field label
 * in the group and version of the request. */
struct dv_field_selector *dv_field_selector_parse(const struct dv_kind *kind, dv_str group,
                                                  dv_str text, struct dv_arena *arena,
                                                  struct dv_err *err);
bool dv_field_selector_matches(const struct dv_field_selector *selector,
                               const struct dv_object *object);
bool dv_field_selector_is_empty(const struct dv_field_selector *selector);
/* Whether the object, which may be packed, matches both; `fields` may be NULL. */
bool dv_object_is_selected(struct dv_object *object, const struct dv_label_selector *labels,
                           const struct dv_field_selector *fields);
/* Tells each text at a path of fields ("spec.devices.name") of an object that may be packed, in
 * order, and unpacks nothing. False: the object is in no pool, and its value is always there. */
bool dv_object_each_text(const struct dv_object *object, dv_str path,
                         void (*see)(void *ctx, dv_str text), void *ctx);
/* Whether the object, which may be packed, has an annotation of that name. */
bool dv_object_has_annotation(const struct dv_object *object, dv_str name);
/* The value that `label` must have, when the selector demands one: for looking up by name. */
bool dv_field_selector_demands(const struct dv_field_selector *selector, dv_str label,
                               dv_str *value);

/* Like dv_field_selector_demands, for the text of a selector, whatever the kind: for decisions that
 * come before its fields are looked up. False also when it cannot be read. */
bool dv_field_selector_text_demands(dv_str text, dv_str label, struct dv_arena *arena,
                                    dv_str *value);

/* Whether a core NodeSelector can be evaluated: known operators, whole numbers for Gt and Lt, keys
 * and values that labels can have. DV_INVALID_ARGUMENT says what is wrong. */
DV_CHECKED bool dv_node_selector_check(const struct dv_api_node_selector *selector,
                                       struct dv_err *err);
/* Whether a core NodeSelector selects a node of this name and these labels. A term that cannot be
 * evaluated matches nothing. */
bool dv_node_selector_matches(const struct dv_api_node_selector *selector, dv_str node_name,
                              const struct dv_str_entry *labels, size_t n_labels);

/* Whether the rule taints the device: all that its selector names is so, and one without a selector
 * selects every device. An empty name stands for any: whether a device of the pool may be meant. */
bool dv_taint_rule_selects(const struct dv_api_device_taint_rule *rule, dv_str driver, dv_str pool,
                           dv_str device);

#endif
