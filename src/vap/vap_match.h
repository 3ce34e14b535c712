/* vap_match.h - whether a policy or a binding is about a write. */
#ifndef DV_VAP_MATCH_H
#define DV_VAP_MATCH_H

#include <stdbool.h>

struct dv_api_object_meta;
struct dv_api_version;
struct dv_vap_match;
struct dv_vap_write;

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
