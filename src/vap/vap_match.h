/* vap_match.h - whether a policy, a binding or a webhook is about a write. */
#ifndef DV_VAP_MATCH_H
#define DV_VAP_MATCH_H

#include <stdbool.h>

struct dv_api_match_resources;
struct dv_api_object_meta;
struct dv_api_version;
struct dv_arena;
struct dv_kind;
struct dv_label_selector;
struct dv_vap_write;

/* Which requests are meant. */
struct dv_vap_match {
    const struct dv_api_match_resources *value; /* NULL: all */
    const struct dv_label_selector *namespaces; /* NULL: none can match */
    const struct dv_label_selector *objects;
};

/* Keeps `value`; selectors are compiled into `arena`. */
struct dv_vap_match dv_vap_match_of(const struct dv_api_match_resources *value,
                                    struct dv_arena *arena);
/* Whether any write of objects of the kind may be meant. */
bool dv_vap_match_is_about(const struct dv_vap_match *match, const struct dv_kind *kind);
/* Whether nobody is asked about the kind: policies and webhooks are never about themselves, or
 * nobody could remove one that refuses all. */
bool dv_vap_is_exempt(const struct dv_kind *kind);

/* The labels that selectors are held against. */
struct dv_vap_labels {
    const struct dv_api_object_meta *object; /* NULL: it has none */
    const struct dv_api_object_meta *old;
    const struct dv_api_object_meta *namespace; /* NULL: it is not there */
};

/* Whether the write is meant; *version is the one that a rule names, in which the objects are to be
 * shown. */
bool dv_vap_matches(const struct dv_vap_match *match, const struct dv_vap_write *write,
                    const struct dv_vap_labels *labels, const struct dv_api_version **version);

#endif
