/* claim_file.h - the kubelet's own state files, read as Go's encoding/json reads them: what all of
 * them have in common. */
#ifndef DV_CLAIM_FILE_H
#define DV_CLAIM_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "claim/claim.h"

struct dv_arena;
struct dv_err;
struct dv_json;

/* The reading of one file. A value of the wrong kind is left out and reading goes on, though the
 * verdict is bad; anything worse stops it. */
struct dv_claim_file {
    struct dv_arena *arena;
    struct dv_err *err;
    enum dv_claim_verdict verdict;
};

/* Parses the text, and keeps it. NULL, with the verdict set: it is not JSON. */
const struct dv_json *dv_claim_file_parse(struct dv_claim_file *file, dv_str text);
/* Each of these reads a value and returns whether there is one: null is none, and changes
 * nothing. */
bool dv_claim_file_text(struct dv_claim_file *file, const struct dv_json *node, dv_str *text);
bool dv_claim_file_i64(struct dv_claim_file *file, const struct dv_json *node, int64_t *number);
bool dv_claim_file_u32(struct dv_claim_file *file, const struct dv_json *node, uint32_t *number);
bool dv_claim_file_object(struct dv_claim_file *file, const struct dv_json *node);
bool dv_claim_file_array(struct dv_claim_file *file, const struct dv_json *node);

#endif
