/* jsonl.h - corpora of JSON Lines: a record a line, each replayed and compared on its own. */
#ifndef DV_GOLDEN_JSONL_H
#define DV_GOLDEN_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "files.h"

struct dv_arena;
struct dv_json;

/* One line, while it is replayed. */
struct jsonl_record {
    const char *file;
    unsigned line;
    const struct dv_json *json;
    struct dv_arena *arena;
    bool has_failed;
};

struct jsonl_replay {
    struct golden_kind kind;
    void (*replay)(struct jsonl_record *record);
};

enum { JSONL_REPLAYS_MAX = 8 };

/* Replays the files in the folder that argv names, kind by kind, prints what differs and, last, how
 * many records passed and failed. Returns the exit status. */
int jsonl_main(int argc, char **argv, const struct jsonl_replay *replays, size_t n_replays);

/* A member. When it is not of that kind the program ends: the corpus is not what its README says.
 */
dv_str jsonl_str(const struct jsonl_record *record, const char *key);
int64_t jsonl_i64(const struct jsonl_record *record, const char *key);
bool jsonl_bool(const struct jsonl_record *record, const char *key); /* false when it is absent */

/* These print a difference, and the record has failed. */
void jsonl_compare_str(struct jsonl_record *record, const char *what, dv_str got, dv_str want);
void jsonl_compare_i64(struct jsonl_record *record, const char *what, int64_t got, int64_t want);
void jsonl_compare_bool(struct jsonl_record *record, const char *what, bool got, bool want);

#endif
