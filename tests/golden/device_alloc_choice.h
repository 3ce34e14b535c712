/* device_alloc_choice.h - rules 1, 3 and 4 of golden/device-alloc's README: which devices. */
#ifndef DV_GOLDEN_DEVICE_ALLOC_CHOICE_H
#define DV_GOLDEN_DEVICE_ALLOC_CHOICE_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_json;

/* What has happened so far in a sequence. Sets of texts are objects. */
struct rules {
    struct dv_arena *arena;
    unsigned n_steps;
    struct dv_json *lists;  /* resource -> id -> device, as listed last */
    struct dv_json *pods;   /* uid -> pod */
    struct dv_json *held;   /* as told last */
    struct dv_json *leaked; /* ids that a failure may have left taken (rule 6), of any resource */
    struct dv_json *file;   /* the state file as told last */
};

bool set_has(const struct dv_json *set, dv_str text);
void set_add(struct dv_json *set, dv_str text, struct dv_arena *arena);
void set_add_all(struct dv_json *set, const struct dv_json *list, struct dv_arena *arena);
struct dv_json *set_of_entry(const struct dv_json *entry, struct dv_arena *arena);

/* An admission collects first: what other pods hold no longer is out of `rules->held`. */
void rules_drop_gone(struct rules *rules, const struct dv_json *op, const struct dv_json *held);
bool rules_check_admission(struct rules *rules, const struct dv_json *pod,
                           const struct dv_json *outcome, struct dv_err *err);

#endif
