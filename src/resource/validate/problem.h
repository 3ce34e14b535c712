/* problem.h - how checks report: where they are in an object, and what is wrong there.
 *
 * A path is a chain of steps on the stack, and becomes a text only when there is a problem: an
 * object without any is checked without printing anything. */
#ifndef DV_RESOURCE_PROBLEM_H
#define DV_RESOURCE_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/validate.h" /* IWYU pragma: export */

struct dv_message;
struct dv_quantity;
struct dv_str_entry;

enum dv_field_path_kind {
    PATH_NAME,  /* ".name" */
    PATH_INDEX, /* "[1]" */
    PATH_KEY,   /* "[key]" */
    PATH_TEXT,  /* ".key": a key where the reference has no brackets */
};

struct dv_field_path {
    const struct dv_field_path *up; /* NULL: the object */
    enum dv_field_path_kind kind;
    const char *name;
    size_t index;
    dv_str key;
};

static inline struct dv_field_path dv_path_name(const struct dv_field_path *up, const char *name)
{
    return (struct dv_field_path){.up = up, .kind = PATH_NAME, .name = name};
}
static inline struct dv_field_path dv_path_index(const struct dv_field_path *up, size_t index)
{
    return (struct dv_field_path){.up = up, .kind = PATH_INDEX, .index = index};
}
static inline struct dv_field_path dv_path_key(const struct dv_field_path *up, dv_str key)
{
    return (struct dv_field_path){.up = up, .kind = PATH_KEY, .key = key};
}

/* How the value that is wrong is shown. */
enum dv_bad_value_kind {
    BAD_NONE,   /* not shown */
    BAD_NULL,   /* null */
    BAD_STRING, /* quoted as Go does */
    BAD_NUMBER,
    BAD_BOOL,
    BAD_JSON, /* a text that is JSON already */
};

struct dv_bad_value {
    enum dv_bad_value_kind kind;
    dv_str text;
    int64_t number; /* of a number or boolean */
};

static inline struct dv_bad_value dv_bad_none(void)
{
    return (struct dv_bad_value){.kind = BAD_NONE};
}
static inline struct dv_bad_value dv_bad_null(void)
{
    return (struct dv_bad_value){.kind = BAD_NULL};
}
static inline struct dv_bad_value dv_bad_str(dv_str text)
{
    return (struct dv_bad_value){.kind = BAD_STRING, .text = text};
}
static inline struct dv_bad_value dv_bad_i64(int64_t number)
{
    return (struct dv_bad_value){.kind = BAD_NUMBER, .number = number};
}
static inline struct dv_bad_value dv_bad_bool(bool is_true)
{
    return (struct dv_bad_value){.kind = BAD_BOOL, .number = is_true};
}
/* Shows a message, and a list of them, as the reference prints its own structs. */
struct dv_bad_value dv_bad_message(const struct dv_message *message, const void *value,
                                   struct dv_arena *arena);
struct dv_bad_value dv_bad_messages(const struct dv_message *message, const void *values, size_t n,
                                    struct dv_arena *arena);
struct dv_bad_value dv_bad_quantity(const struct dv_quantity *quantity, struct dv_arena *arena);
/* An object of texts. */
struct dv_bad_member {
    const char *name;
    dv_str value;
};
struct dv_bad_value dv_bad_object(const struct dv_bad_member *members, size_t n,
                                  struct dv_arena *arena);
/* A map of texts, or null when it is empty. */
struct dv_bad_value dv_bad_entries(const struct dv_str_entry *entries, size_t n,
                                   struct dv_arena *arena);
/* The texts, or null when there are none. */
struct dv_bad_value dv_bad_strs(const dv_str *texts, size_t n, struct dv_arena *arena);

/* "{`nodeName`, `allNodes`}": which of the fields are set. */
struct dv_set_field {
    const char *name;
    bool is_set;
};
struct dv_bad_value dv_bad_set(const struct dv_set_field *fields, size_t n, struct dv_arena *arena);

/* Adds a problem at `path`, or at its child `name` when that is not NULL. */
void dv_problem_add(struct dv_problems *problems, enum dv_problem_type type,
                    const struct dv_field_path *path, const char *name, struct dv_bad_value bad,
                    const char *fmt, ...) DV_PRINTF(6, 7);
/* Whether nothing more is added: callers can skip what is costly to describe. */
bool dv_problems_are_full(const struct dv_problems *problems);
void dv_required(struct dv_problems *problems, const struct dv_field_path *path, const char *name);
void dv_too_long(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                 size_t max);
void dv_too_many(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                 size_t n, size_t max);
/* `Unsupported value: "x": supported values: "a", "b"` */
void dv_not_supported(struct dv_problems *problems, const struct dv_field_path *path,
                      const char *name, dv_str value, const dv_str *supported, size_t n_supported);
void dv_immutable(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                  struct dv_bad_value bad);

/* Adds `Duplicate value` for every text that was there before, at its index under `path`. The first
 * of the texts is at `keys`, each next one `stride` bytes further. `name` is a field of the item,
 * or NULL for the item itself. */
void dv_check_unique(struct dv_problems *problems, const struct dv_field_path *path,
                     const char *name, const void *keys, size_t n, size_t stride);

#endif
